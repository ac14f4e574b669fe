import TestSupport
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs that present files. WORMHOLE_ROOT names the root of the groups.
extension Peer {
  static func present(_ path: String, _ manner: PeerJob.Presenting) throws {
    let coordinator = Coordinator(Arbiters(.testing(lease: .seconds(1)), root: nil))
    var presenter = Coordinator.Presenter()
    presenter.didChange = { change in
      tell("changed \(change.relativePath ?? ".")\(change.isNew ? ", new" : "")")
    }
    if case .listening = manner {} else { answer(in: &presenter, path, manner, coordinator) }
    let subscription = try coordinator.present(path, as: presenter)
    try say("presenting")
    waitToBeKilled()
    subscription.stop()
  }

  static func present(_ path: String, among hung: [String]) throws {
    let coordinator = Coordinator(Arbiters(.testing(lease: .seconds(1)), root: nil))
    var hanging = Coordinator.Presenter()
    hanging.relinquish = { _, _ in
      tell("hangs")
      waitToBeKilled()
    }
    for path in hung { try coordinator.present(path, as: hanging) }
    try present(path, .plainly)
  }

  private static func answer(
    in presenter: inout Coordinator.Presenter, _ path: String,
    _ manner: PeerJob.Presenting, _ coordinator: Coordinator
  ) {
    presenter.relinquish = { use, goOn in
      tell("asked before \(use)")
      if case .hang(let until) = manner {
        try? eventually("it may go on", within: .seconds(60)) { exists(until) }
      }
      goOn { tell("resumed") }
    }
    presenter.save = { done in
      if case .save(let text) = manner {
        do {
          try coordinator.write(path) { try overwrite($0, text) }
          tell("saved")
        } catch { tell("\(error)") }
      }
      done()
    }
    presenter.delete = { done in
      tell("asked to let go")
      done()
    }
    presenter.didMove = { tell("moved \($0.oldRelativePath ?? ".") to \($0.to)") }
  }

  /// Additions stay in memory until another process asks for a save, or until enough have been
  /// made.
  static func presentAndAdd(_ path: String, times: Int) throws {
    let coordinator = Coordinator(Arbiters(.testing(lease: .seconds(1)), root: nil))
    let unsaved = Monitor(0)
    let save: @Sendable () throws -> Void = {
      let added = unsaved.withLock { unsaved in
        defer { unsaved = 0 }
        return unsaved
      }
      guard added > 0 else { return }
      do {
        try coordinator.write(path) { path in
          try overwrite(path, "\((try number(in: path)) + added)")
        }
      } catch {
        unsaved.withLock { $0 += added }
        throw error
      }
    }
    var presenter = Coordinator.Presenter()
    presenter.save = { done in
      do { try save() } catch { tell("\(error)") }
      done()
    }
    let show: @Sendable () -> Void = {
      do {
        tell("shows \(try coordinator.read(path) { path in try number(in: path) })")
      } catch { tell("\(error)") }
    }
    presenter.didChange = { _ in show() }
    let subscription = try coordinator.present(path, as: presenter)
    for index in 0..<times {
      unsaved.withLock { $0 += 1 }
      if index % 3 == 2 { try save() }
    }
    while unsaved.withLock({ $0 }) > 0 { try save() }
    // A presenter is not notified of its own changes.
    show()
    try say("added")
    waitToBeKilled()
    subscription.stop()
  }

  private static func tell(_ words: String) { try? say(words) }

  private static func exists(_ path: String) -> Bool {
    (try? Descriptor.status(ofPath: path)) != nil
  }

  private static func number(in path: String) throws -> Int {
    let file = try Descriptor.open(path: path, [.readWrite, .create], mode: 0o600)
    return Int(String(decoding: try file.contents(), as: UTF8.self)) ?? 0
  }

  private static func overwrite(_ path: String, _ text: String) throws {
    let file = try Descriptor.open(path: path, [.writeOnly, .create, .truncate], mode: 0o600)
    try file.write(text)
  }
}
