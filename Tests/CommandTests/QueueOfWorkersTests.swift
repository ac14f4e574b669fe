import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// `wormhole queue` for a queue that several workers share.
@Suite(.blocking, .notSanitized("about what a command prints")) struct QueueOfWorkersTests {
  @Test func aQueueIsListedAndChangedLikeAMember() throws {
    let stage = try Stage()
    let container = try SharedContainer(directory: stage.container)
    let queue = container.queue("jobs", of: String.self)
    var options = SendOptions()
    (options.id, options.durability) = ("first", .process)
    try queue.send("wash", options)
    let list = try stage.run("wormhole queue jobs | cut -f1,2")
    #expect(list.output == "first\twaiting\n", "\(list.errors)")
    // A member of the same name: the options decide.
    try container.peer("jobs").send("hello", options)
    let both = try stage.run("wormhole queue jobs")
    #expect(both.status == .exited(64))
    #expect(both.errors.contains("'jobs' is a member and a queue; add --member or --queue"))
    #expect(try stage.run("wormhole queue jobs --queue --cancel first").status == .exited(0))
    #expect(try queue.messages.isEmpty)
    #expect(try stage.run("wormhole queue jobs --queue").output == "")
    #expect(try stage.run("wormhole queue jobs --member | cut -f1").output == "first\n")
    #expect(try stage.run("wormhole queue jobs --queue --member").status == .exited(64))
    // Only the queue's messages of the kind are cancelled.
    try queue.send(contentsOf: ["dry", "iron"])
    let purge = "wormhole queue jobs --queue --purge"
    let kept = try stage.run("\(purge) --kind Data --older-than 0 --verbose")
    #expect(kept.status == .exited(0) && kept.errors.contains("0 messages were cancelled"))
    let purged = try stage.run("\(purge) --kind String --json")
    #expect(purged.output.contains("\"count\":2") && purged.output.contains("cancelled"))
    #expect(try queue.messages.isEmpty)
    #expect(try stage.run("wormhole queue jobs --member | cut -f1").output == "first\n")
    #expect(try stage.run("wormhole queue jobs --kind String").status == .exited(64))
  }

  /// A queue has no outcomes: those of the member of the same name are neither listed nor removed.
  @Test func theOutcomesOfAMemberAreNotTheQueues() throws {
    let stage = try Stage()
    let made = try stage.run(
      """
      set -e; wormhole send --queue jobs one; wormhole send --to jobs two
      wormhole send --to watch --from jobs --id a it
      cd hole/members/watch/inbox
      for file in *; do
        mv $file ../../jobs/receipts/$(echo $file | sed s/,n01,/,r01,/).cancelled
      done
      """)
    #expect(made.status == .exited(0), "\(made.errors)")
    for options in [
      "--queue --contexts", "--queue --outcomes", "--queue --remove-outcomes",
      "--member --queue --remove-outcomes",
    ] {
      let refused = try stage.run("wormhole queue jobs \(options)")
      #expect(refused.status == .exited(64), "\(options): \(refused.output)")
      #expect(refused.errors.contains("and --queue exclude each other"), "\(refused.errors)")
    }
    let listed = try stage.run("wormhole queue jobs --outcomes | cut -f1")
    #expect(listed.output == "a\n", "\(listed.errors)")
    #expect(
      try stage.run("wormhole queue jobs --member --remove-outcomes").status == .exited(0))
    #expect(try stage.run("wormhole queue jobs --outcomes").output == "")
  }

  /// A batch is one file, and one row.
  @Test func aRowStatesTheNumberOfItsMessages() throws {
    let stage = try Stage()
    let sent = try stage.run(
      "printf '1\\n2\\n3\\n' >in && wormhole send --to watch --lines <in "
        + "&& wormhole send --to watch good")
    #expect(sent.status == .exited(0), "\(sent.errors)")
    #expect(try stage.run("wormhole queue watch | cut -f 5").output == "3\n1\n")
    let damaged = try stage.run("cd hole/members/watch/inbox && echo damaged >\"$(ls | head -1)\"")
    #expect(damaged.status == .exited(0), "\(damaged.errors)")
    #expect(try stage.run("wormhole receive --as watch --count 1").output == "good\n")
    #expect(try stage.run("wormhole queue watch --dead | cut -f 4").output == "3\n")
    let object = try stage.run("wormhole queue watch --dead --json").output
    #expect(object.contains(#""count":3,"#), "\(object)")
  }

  @Test func allDeadLettersAreRemovedAtOnce() throws {
    let stage = try Stage()
    let made = try stage.run(
      """
      for kind in A A B; do wormhole send --to grave --kind $kind x; done
      wormhole send --to grave --id good fine
      wormhole receive --as grave --attempts 1 --count 1 --quiet --exec '[ $(cat) = fine ]'
      wormhole send --to grave waiting
      """)
    #expect(made.status == .exited(0), "\(made.errors)")
    #expect(try stage.run("wormhole queue grave --dead | cut -f 3").output == "A\nA\nB\n")
    let discard = "wormhole queue grave --discard-all"
    let recent = try stage.run("\(discard) --older-than 1h --verbose")
    #expect(recent.errors.contains("0 messages were discarded"), "\(recent.errors)")
    let kind = try stage.run("\(discard) --kind A --json")
    #expect(kind.output.contains(#""count":2"#) && kind.output.contains("discarded"))
    #expect(try stage.run("wormhole queue grave --dead | cut -f 3").output == "B\n")
    let rest = try stage.run("\(discard) --verbose")
    #expect(rest.errors.contains("1 message was discarded"), "\(rest.errors)")
    #expect(try stage.run("ls hole/members/grave/dead").output == "")
    #expect(try stage.run("wormhole queue grave | cut -f 2").output == "waiting\n")
    let both = try stage.run("\(discard) --purge")
    #expect(both.status == .exited(64))
  }

  @Test func aDeadLetterThatCannotBeRemovedIsReportedAfterTheOthers() throws {
    let stage = try Stage()
    let made = try stage.run(
      """
      for id in a b c; do wormhole send --to grave --id $id x; done
      wormhole send --to grave fine
      wormhole receive --as grave --attempts 1 --count 1 --quiet --exec '[ $(cat) = fine ]'
      """)
    #expect(made.status == .exited(0), "\(made.errors)")
    let discard = try stage.run(
      "wormhole queue grave --discard-all --json",
      environment: ["WORMHOLE_FAULTS=unlink~/dead/:before:fail=EIO"])
    #expect(discard.status != .exited(0))
    #expect(discard.output.contains(#""count":2"#), "\(discard.output)")
    #expect(discard.errors.contains("cannot discard message 'a'"), "\(discard.errors)")
    #expect(try stage.run("wormhole queue grave --dead | cut -f 1").output == "a\n")
  }

  /// Only the names of the messages are kept: about 70 bytes for each.
  @Test func aLongQueueIsListedWithLittleMemory() throws {
    let stage = try Stage()
    _ = try stage.run("wormhole send --queue jobs --id one value")
    let commands = ["wormhole queue jobs", "wormhole queue jobs --json", "wormhole doctor"]
    let before = try commands.map { try MemoryUse($0, in: stage).kibibytes }
    let count = TestRun.isLong ? 100_000 : 10_000
    try fill(stage, count)
    for (command, before) in zip(commands, before) {
      let used = try MemoryUse(command, output: "list", in: stage).kibibytes
      #expect(used - before < 1024 + count * 160 / 1024, "\(command): \(used), \(before) KiB")
    }
    let begin = Instant.now
    let listed = try stage.run("wormhole queue jobs >list; wc -l <list; cut -f1 list | sort -c")
    #expect(listed.output == "\(count)\n" && listed.status == .exited(0), "\(listed.errors)")
    if TestRun.isLong { print("queue over \(count) messages: \(Instant.now - begin)") }
  }

  /// Links a message often: sending would take longer.
  private func fill(_ stage: Stage, _ count: Int) throws {
    let inbox = try Descriptor.open(
      path: [stage.container, "queues", "jobs", "inbox"].joined(separator: "/"),
      [.readOnly, .directory])
    let name = try #require(try inbox.names().first)
    let parts = name.split(separator: ",", omittingEmptySubsequences: false)
    for index in 1..<count {
      let id = "m" + "\(1_000_000 + index)".dropFirst()
      try inbox.link(
        name, to: inbox, (parts[..<3] + [id[...]] + parts[4...]).joined(separator: ","))
    }
  }
}
