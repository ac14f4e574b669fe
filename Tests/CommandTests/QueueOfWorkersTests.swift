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
}
