import Foundation
import Wormhole

// The examples of the documentation's articles, word for word, with the declarations that they
// assume.

enum ErrorsArticle {
  static func retry() throws {}
  static func report(_ text: String) {}

  static func put(_ seats: Channel<Int>) throws {
    do {
      try seats.put(1, ifVersion: 3)
    } catch WormholeError.Code.conflict {
      try retry()
    } catch {
      report("\(error)")
    }
  }
}

enum CancellationArticle {
  static func report(_ text: String) {}

  static func put(_ seats: Channel<Int>) async throws {
    do {
      try await seats.put(1)
    } catch CancellationError() {
      return
    } catch {
      report("\(error)")
    }
  }
}

enum GettingStartedArticle {
  static func write() throws {
    let container = try SharedContainer(directory: "cinema.container")
    let seats = container.channel("seats", of: Int.self)
    try seats.put(120)
  }

  static func read() throws {
    let seats = try SharedContainer(directory: "cinema.container").channel("seats", of: Int.self)
    try print(seats.value ?? 0)
    try seats.watch { snapshot in print("now", snapshot.value ?? 0) }

    try seats.update(default: 120) { $0 -= 2 }
  }
}

enum ChannelsArticle {
  struct Film: Codable, Sendable { let title: String }

  static func change(_ container: SharedContainer, to next: Film) throws {
    let film = container.channel("film", of: Film.self)
    try film.put(Film(title: "Back to the Future"))
    let title = try film.value?.title

    let seats = container.channel("seats", of: Int.self)
    try seats.update(default: 120) { $0 -= 2 }

    guard let read = try film.latest else { return }
    do {
      try film.put(next, ifVersion: read.version)
    } catch {
      guard error.code == .conflict else { throw error }
      // Somebody else has put one meanwhile: read again.
    }
    print(title ?? "none yet")
  }

  static func expire(_ container: SharedContainer) throws {
    try container.channel("online", of: Bool.self).put(true, timeToLive: .seconds(30))
  }

  static func watch(_ seats: Channel<Int>) async throws {
    let watching = try seats.watch { print($0.value ?? 0) }
    for try await snapshot in seats.snapshots() { print(snapshot.version) }
    watching.stop()
  }
}

enum ConfigurationArticle {
  struct Config: Codable { var workers = 4 }

  @MainActor static func show(_ container: SharedContainer) throws {
    let model = try ObservableChannel(container.channel("config", default: Config()))
    print(model.value.workers)
  }
}

enum SettingsAndNoticesArticle {
  static func reload() {}

  static func both(_ container: SharedContainer) throws -> Int {
    let settings = container.defaults("cinema")
    settings.register(defaults: ["rows": 12])
    try settings.set(14, forKey: "rows")
    let rows = try settings.integer(forKey: "rows")

    let changed = container.notice("movies-changed")
    try changed.watch { reload() }
    try changed.post()
    return rows
  }
}

enum NamedLocksArticle {
  static let money = 12
  static func count(the money: Int) throws {}
  static func build(as generation: Int) throws {}

  static func hold(_ container: SharedContainer) throws {
    try container.lock("till").hold {
      try count(the: money)
    }

    try container.lock("build").hold(takeOverAfter: .seconds(60)) { generation in
      try build(as: generation)
    }
  }
}

enum MembersArticle {
  static func join() throws {
    let container = try SharedContainer(group: "group.com.example.cinema")
    let watch = try container.join(as: "watch", info: ["version": "2"])
    let phone = watch.peer("phone")
    try phone.watchReachability { reachability in
      // notReachable, backgroundOnly or immediatelyReachable
    }
  }

  static func standBy(_ container: SharedContainer) async throws {
    let printer = try await container.join(as: "printer", within: nil)
    await printer.leave()
  }
}

enum MessagesArticle {
  struct Order: Codable, Sendable { let film: String }

  actor Kitchen { func cook(_ order: Order) throws {} }

  static func send(_ container: SharedContainer) async throws {
    let till = try await container.join(as: "till")
    let sent = try await till.peer("watch").send(Order(film: "Metropolis"))
    try await sent.waitUntilDelivered(within: .seconds(10))
  }

  static func send(_ order: Order, to printer: Peer, trace: String) async throws {
    try await printer.send(order, timeToLive: .seconds(60), headers: ["trace-id": trace])
    try await printer.send(order, delay: .seconds(600))
  }

  static func receive(_ container: SharedContainer, _ kitchen: Kitchen) async throws {
    let watch = try await container.join(as: "watch")
    try watch.receive(Order.self) { order, message in
      try await kitchen.cook(order)  // what it throws is a failed attempt
    }
    for try await order in watch.messages(of: Order.self) {
      try await kitchen.cook(order)  // or as a sequence
    }
  }
}

enum FilesArticle {
  struct Report: Codable, Sendable { let day: Int }

  static func hand(to phone: Peer, and watch: Member) throws -> Sent {
    let sent = try phone.send(file: "today.log", metadata: Report(day: 12))

    try watch.receive(kinds: ["Report"]) { message in
      let report = try message.value(as: Report.self)
      try message.file?.move(to: "reports/\(report.day).log")
    }
    return sent
  }
}

enum RequestsArticle {
  struct Question: RequestValue { typealias Reply = RequestsArticle.Answer }
  struct Answer: Codable, Sendable {
    init(to question: Question) {}
  }
  struct Glance: Codable, Sendable {}

  static func ask(_ container: SharedContainer) async throws -> Answer {
    let watch = try await container.join(as: "watch")
    watch.respond(to: Question.self) { question in
      Answer(to: question)
    }

    let phone = try await container.join(as: "phone")
    let answer: Answer = try await phone.peer("watch").request(Question(), within: .seconds(2))
    try await phone.peer("watch").sendImmediately(Glance())
    return answer
  }

  static func ask(_ steps: [Question], as phone: Member) {
    for step in steps {
      phone.peer("watch").request(step, as: Answer.self) { end in
        // The answer, or why there is none.
      }
    }
  }

  static func wake(_ container: SharedContainer, _ phone: Member) async throws -> Answer {
    try await container.registerLaunch(
      of: "watch", program: "watch-agent", arguments: ["--quietly"])

    try await phone.peer("watch").wake(within: .seconds(5))
    let answer: Answer = try await phone.peer("watch").request(Question(), waking: true)
    return answer
  }
}

enum ThreadsAndLifetimesArticle {
  struct Ticket: Codable, Sendable {}
  struct Order: Codable, Sendable {}

  actor Kitchen { func cook(_ order: Order) throws {} }
  actor Drawer { func open() throws {} }

  final class Paper: Sendable { func print(_ ticket: Ticket) throws {} }

  static func receive(_ paper: Paper) async throws {
    let container = try await SharedContainer(group: "group.com.example.cinema")
    let member = try await container.join(as: "printer")
    let printing = try member.receive(Ticket.self) { ticket, _ in
      try paper.print(ticket)
    }
    try await printing.finished()
    await member.leave()
  }

  static func send(_ ticket: Ticket, _ container: SharedContainer) throws {
    try container.withMember(as: "till") { till in
      try till.peer("printer").send(ticket)
    }
  }

  static func change(_ speed: Channel<Int>) async throws {
    try await speed.put(88)
    try await speed.update(default: 0) { $0 += 1 }
  }

  actor Car {
    private let channel: Channel<Int>
    private var speed = 0

    init(_ channel: Channel<Int>) { self.channel = channel }

    func goFaster() async throws {
      let next = speed + 1  // a property of the actor
      try await channel.update { $0 = next }
    }
  }

  @MainActor final class Dial {
    func show(_ speed: Int?) {}

    func watch(
      _ speed: Channel<Int>, _ member: Member, _ kitchen: Kitchen
    ) throws {
      try speed.watch { @MainActor [weak self] in self?.show($0.value) }
      try member.receive(Order.self) { order, _ in
        try await kitchen.cook(order)
      }
    }
  }

  static func hold(_ container: SharedContainer, _ drawer: Drawer) async throws {
    try await container.lock("till").hold {
      try await drawer.open()
    }
  }
}

enum CoordinationArticle {
  final class Editor: Sendable {
    func pause() {}
    func goOn() {}
    func save(to path: String) throws {}
    func readAgain() {}
  }

  static let editor = Editor()
  // The code that uses the property is only compiled, and never called.
  nonisolated(unsafe) static var presenting: Subscription?

  static func replace() throws {
    let coordinator = Coordinator()
    let text = try coordinator.read("notes/today.md") { path in
      try String(contentsOfFile: path, encoding: .utf8)
    }
    try coordinator.replace("notes/today.md") { new, _ in
      try (text + "one more line\n").write(toFile: new, atomically: false, encoding: .utf8)
    }
  }

  static func present(by coordinator: Coordinator) throws -> Subscription {
    var presenter = Coordinator.Presenter()
    presenter.relinquish = { use, goOn in
      editor.pause()
      goOn { editor.goOn() }
    }
    presenter.save = { done in
      try? coordinator.write("notes/today.md") { path in try editor.save(to: path) }
      done()
    }
    presenter.didChange = { _ in editor.readAgain() }
    let presenting = try coordinator.present("notes/today.md", as: presenter)
    return presenting
  }

  static func move(by coordinator: Coordinator) throws {
    let intents: [Coordinator.Intent] = [
      .writing("notes/today.md"), .writing("old/monday.md"),
    ]
    try coordinator.access(intents) { access in
      try FileManager.default.moveItem(atPath: access.paths[0], toPath: access.paths[1])
      try access.moved(access.paths[0], to: access.paths[1])
    }
  }

  static func hearOfSuspension(
    _ coordinator: Coordinator, _ presenter: Coordinator.Presenter
  ) {
    signal(SIGTSTP, SIG_IGN)
    let suspension = DispatchSource.makeSignalSource(signal: SIGTSTP, queue: .main)
    suspension.setEventHandler {
      try? coordinator.write("notes/today.md") { path in try editor.save(to: path) }
      presenting?.stop()
      raise(SIGSTOP)
      // From here on it was told to go on: nobody has told it of anything meanwhile.
      presenting = try? coordinator.present("notes/today.md", as: presenter)
      editor.readAgain()
    }
    suspension.resume()
  }
}

enum QueuesArticle {
  static func work(
    _ directory: String, report: String, archive: String
  ) async throws -> [Subscription] {
    struct Job: Codable, Sendable {
      var number: Int
    }

    let container = try await SharedContainer(directory: directory)
    let queue = container.queue("jobs", of: Job.self)
    try await queue.send(Job(number: 1))

    let working = try queue.work(concurrency: 4) { job, message in
      print("job", job.number, message.isRedelivered ? "again" : "")
    }

    let slow = try queue.work(handlingDeadline: .seconds(10)) { job, message in
      for part in 1...job.number {
        print("part", part)
        try message.renew()
      }
    }

    for number in 1...3 {
      try await queue.send(Job(number: number), SendOptions(orderingKey: "account 7"))
    }

    let reports = container.queue("reports", of: Job.self)
    try await reports.send(Job(number: 7), file: report)

    let archiving = try reports.work { job, message in
      try await message.file?.move(to: archive + "/\(job.number)")
    }
    return [working, slow, archiving]
  }
}
