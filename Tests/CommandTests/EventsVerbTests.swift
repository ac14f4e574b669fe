import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// `wormhole events`, beside other processes.
@Suite(.blocking, .notSanitized("about what a command prints")) struct EventsVerbTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  private func events(_ options: String = "") throws -> Running {
    let running = try stage.start("wormhole events --verbose \(options)")
    try eventually("it watches") { try running.errors.contains("watching '") }
    return running
  }

  private func lines(of running: Running) throws -> [String] {
    try running.output.split(separator: "\n").map {
      String($0).replacing(/process [0-9]+/, with: "process N")
    }
  }

  /// Waits until there is a line.
  private func expect(_ line: String, of running: Running) throws {
    do {
      try eventually("the line '\(line)'") { try lines(of: running).contains(line) }
    } catch {
      throw TooLate(description: "'\(line)' in \(try lines(of: running))")
    }
  }

  /// Runs the body while a command waits in the program that it runs, and then ends the program.
  ///
  /// What has ended before `events` looks is reported with its end only.
  private func during(_ command: String, _ body: () throws -> Void) throws {
    try stage.done("touch held")
    // The program does not outlive this test's directory.
    let holder = try stage.start("\(command) 'while [ -e held ]; do sleep 0.02; done'")
    try body()
    try stage.done("rm held")
    #expect(try holder.outcome().status == .exited(0))
  }

  @Test func channelsSettingsAndNotices() throws {
    try stage.done("wormhole put known 1; wormhole defaults write cinema rows 1 --type json")
    let running = try events()
    try stage.done("wormhole put film Metropolis; wormhole put known 2")
    try expect("channel\tput\tfilm\tMetropolis\tfrom " + writer(of: "film"), of: running)
    try stage.done("wormhole clear film --erase; wormhole post done")
    try expect("notice\tposted\tdone", of: running)
    try eventually("the clear") { try running.output.contains("channel\tcleared\tfilm") }
    try stage.done("wormhole defaults write cinema rows 2 --type json")
    try expect("setting\tchanged\tcinema\trows\t2", of: running)
    try stage.done("wormhole defaults write new key text; wormhole defaults delete cinema rows")
    try expect("setting\tchanged\tnew\tkey\ttext", of: running)
    try expect("setting\tremoved\tcinema\trows", of: running)
    try stage.done(
      "WORMHOLE_CONTAINER=copy wormhole defaults write moved key text; "
        + "mv copy/system/defaults.moved hole/system/")
    try expect("setting\tchanged\tmoved\tkey\ttext", of: running)
    try running.child.send(.interrupt)
    #expect(try running.outcome().status == .signalled(2))
    #expect(try !running.output.contains("lost"))
  }

  private func writer(of channel: String) throws -> String {
    let object = try stage.run("wormhole get \(channel) --json").output
    return String(object.firstMatch(of: /"writer":"([^"]*)"/)?.1 ?? "")
  }

  @Test func messagesMembersAndWorkers() throws {
    try stage.done("wormhole send --to old --id before x")
    let running = try events()
    try stage.done("wormhole send --to till --from office --id one a")
    try expect("message\twaiting\ttill\tone\tfrom office", of: running)
    try stage.done("wormhole send --to till --id later b --delay 3600")
    try expect("message\tdelayed\ttill\tlater", of: running)
    try during("wormhole receive --as till --count 1 --exec") {
      try expect("message\tclaimed\ttill\tone\tfrom office\tattempt 1", of: running)
      try expect("member\tjoined\ttill\twormhole (process N)", of: running)
    }
    try expect("message\tacknowledged\ttill\tone\tfrom office\tattempt 1", of: running)
    try expect("member\tleft\ttill", of: running)
    try stage.done("wormhole send --to till --id bad c")
    try stage.makeDeadLetter(of: "till", id: "bad", by: "receive --as till")
    try expect("message\tdead\ttill\tbad", of: running)
    try stage.done("wormhole send --queue jobs --id job d")
    try expect("message\twaiting\tjobs\tjob", of: running)
    try during("wormhole work jobs --count 1 --exec") {
      try expect("worker\tjoined\tjobs", of: running)
    }
    try expect("message\tacknowledged\tjobs\tjob\tattempt 1", of: running)
    try expect("worker\tleft\tjobs", of: running)
    try stage.done("wormhole send --to till --from office --context open")
    try expect("context\tset\ttill\tfrom office", of: running)
    #expect(try !running.output.contains("before"))
    try running.child.send(.kill)
  }

  @Test func locksAndDamage() throws {
    let running = try events("--kind lock --kind damage --json")
    try during("wormhole lock build -- sh -c") {
      try eventually("the lock is held") { try running.output.contains(#""event":"held""#) }
    }
    try eventually("the lock is free") { try running.output.contains(#""event":"free""#) }
    try stage.done(
      "wormhole put film x; echo junk >hole/channels/film/value.plist; wormhole put film y")
    try eventually("the value was set aside") { try running.output.contains(#""kind":"damage""#) }
    #expect(try !running.output.contains(#""kind":"channel""#))
    #expect(try running.output.matches(of: /"event":"free"/).count == 1)
    try running.child.send(.kill)
  }

  /// As on a file system without notices; what is there at the start is no event.
  @Test func damageIsAlsoFoundByPolling() throws {
    func damage(_ channel: String) throws {
      try stage.done(
        "wormhole put \(channel) x; echo junk >hole/channels/\(channel)/value.plist; "
          + "wormhole put \(channel) y")
    }
    try damage("before")
    let faults = "inotifyAdd@1+:before:fail=ENOSPC"
    let running = try stage.start(
      "env WORMHOLE_FAULTS=\(faults) wormhole events --kind damage --verbose")
    try eventually("it watches") { try running.errors.contains("watching '") }
    for (number, channel) in ["film", "play"].enumerated() {
      try damage(channel)
      try eventually("the value was set aside") { try lines(of: running).count > number }
    }
    let all = try lines(of: running)
    #expect(all.count == 2 && all.allSatisfy { $0.hasPrefix("damage\tset aside\t") }, "\(all)")
    try running.child.send(.kill)
  }

  @Test func accesses() throws {
    // The accesses to files outside of all groups are in the container of the user.
    let root = "WORMHOLE_ROOT=\"$STAGE/root\""
    let made = try stage.run(
      "mkdir -m 700 root && \(root) wormhole coordinate write file -- true; "
        + "ls -d root/wormhole.user/.wormhole")
    guard made.status == .exited(0) else {
      skip("accesses", because: "the user's container is elsewhere: \(made.errors)")
      return
    }
    let running = try stage.start(
      "env WORMHOLE_CONTAINER=root/wormhole.user/.wormhole wormhole events --kind access --verbose")
    try eventually("it watches") { try running.errors.contains("watching '") }
    try during("env \(root) wormhole coordinate write file -- sh -c") {
      let line = "access\trunning\twrite '\(stage.directory.path)/file'"
      try eventually("the access runs") { try running.output.contains(line) }
    }
    try eventually("the access has ended") { try running.output.contains("access\tended") }
    try running.child.send(.kill)
  }

  @Test func lostNoticesAreALine() throws {
    try stage.done("wormhole put film x")
    let running = try events("--kind channel")
    try running.child.send(.stop)
    try running.waitUntilStopped()
    let limit = try #require(
      Int(
        String(
          decoding: try Descriptor.open(
            path: "/proc/sys/fs/inotify/max_queued_events", [.readOnly]
          ).contents(), as: UTF8.self
        ).filter(\.isNumber)))
    let folder = try Descriptor.open(
      path: [stage.container, "notices"].joined(separator: "/"), [.readOnly, .directory])
    _ = try folder.open("a", [.writeOnly, .create], mode: 0o600)
    for _ in 0...(limit / 2 + 1) {
      try folder.rename("a", to: folder, "b")
      try folder.rename("b", to: folder, "a")
    }
    try stage.done("wormhole put film last")
    try running.child.send(.go)
    try expect("lost\tlost\tnotices\tevents are missing", of: running)
    try eventually("the last change") { try running.output.contains("channel\tput\tfilm\tlast") }
    try running.child.send(.kill)
  }

  @Test func anUnknownKindIsRefused() throws {
    #expect(try stage.run("wormhole events --kind ship").status == .exited(64))
    let outcome = try stage.run("wormhole events --timeout 0.05")
    #expect(outcome.status == .exited(1))
  }
}
