import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// URLs in place of paths.
@Suite struct URLTests {
  private let folder: TemporaryDirectory
  private let directory: URL

  init() throws {
    folder = try TemporaryDirectory()
    directory = URL(fileURLWithPath: folder.path, isDirectory: true)
  }

  /// A name whose URL has escapes and whose directory form ends in a slash.
  private var place: URL { directory.appendingPathComponent("tür 1%20", isDirectory: true) }

  @Test(.blocking) func aURLIsTheSameContainerAsItsPath() throws {
    let byURL = try SharedContainer(directory: place)
    try byURL.channel("a").put(1)
    let byPath = try SharedContainer(
      directory: folder.path + "/tür 1%20", options: Options(createsIfMissing: false))
    #expect(try byPath.channel("a", of: Int.self).value == 1)
    #expect(byURL.directory == byPath.directory)
  }

  @Test(.blocking) func filesAreSentAndTakenByURL() throws {
    let container = try SharedContainer(directory: place)
    try folder.write("seats", to: "to send")
    let file = directory.appendingPathComponent("to send")
    try container.peer("watch").send(file: file, SendOptions(durability: .process))
    try container.peer("watch").send(
      file: file, metadata: 7, mode: .moving, SendOptions(durability: .process))
    #expect(!FileManager.default.fileExists(atPath: file.path))
    let watch = try container.join(as: "watch")
    for (number, message) in try watch.take(2).enumerated() {
      let received = try #require(message.file)
      #expect(try String(contentsOf: received.url, encoding: .utf8) == "seats")
      let target = directory.appendingPathComponent("taken \(number)")
      try received.move(to: target)
      #expect(try String(contentsOf: target, encoding: .utf8) == "seats")
      try message.acknowledge()
    }
  }

  @Test func tasksUseURLsToo() async throws {
    let container = try await SharedContainer(directory: place)
    try folder.write("seats", to: "file")
    let file = directory.appendingPathComponent("file")
    let options = SendOptions(durability: .process)
    try await container.peer("watch").send(file: file, options)
    try await container.peer("watch").send(file: file, metadata: 7, options)
    let watch = try await container.join(as: "watch")
    let heard = Heard<String>()
    let target = directory.appendingPathComponent("taken")
    let receiving = try watch.receive { message in
      try await message.file?.move(to: target, replacing: true)
      heard.add(message.kind)
    }
    try await heard.comes("both") { $0 == ["file", "Int"] }
    receiving.stop()
    #expect(FileManager.default.fileExists(atPath: target.path))
  }

  /// A moved file is no longer at its place, with and without a descriptive value.
  @Test(.blocking) func aFileIsMovedByURL() throws {
    let peer = try SharedContainer(directory: place).peer("watch")
    let options = SendOptions(durability: .process)
    let file = directory.appendingPathComponent("file")
    try folder.write("seats", to: "file")
    try peer.send(file: file, mode: .moving, options)
    #expect(!FileManager.default.fileExists(atPath: file.path))
    try folder.write("seats", to: "file")
    try peer.send(file: file, metadata: 7, mode: .moving, options)
    #expect(!FileManager.default.fileExists(atPath: file.path))
  }

  /// The same for a task.
  @Test func aTaskMovesAFileByURL() async throws {
    let peer = try await SharedContainer(directory: place).peer("watch")
    let options = SendOptions(durability: .process)
    let file = directory.appendingPathComponent("file")
    try folder.write("seats", to: "file")
    try await peer.send(file: file, mode: .moving, options)
    #expect(!FileManager.default.fileExists(atPath: file.path))
    try folder.write("seats", to: "file")
    try await peer.send(file: file, metadata: 7, mode: .moving, options)
    #expect(!FileManager.default.fileExists(atPath: file.path))
  }

  @Test(.blocking) func aCoordinatedAccessHasAURL() throws {
    let coordinator = Coordinator()
    let file = directory.appendingPathComponent("note")
    try coordinator.write(file) { try Data("one".utf8).write(to: $0) }
    #expect(try coordinator.read(file) { try String(contentsOf: $0, encoding: .utf8) } == "one")
    try coordinator.replace(file) { new, old in
      try Data((String(contentsOf: old, encoding: .utf8) + " two").utf8).write(to: new)
    }
    #expect(try coordinator.read(file) { try String(contentsOf: $0, encoding: .utf8) } == "one two")
    let presenting = try coordinator.present(file, as: Coordinator.Presenter())
    presenting.stop()
  }

  @Test func anAccessOfATaskHasURLs() async throws {
    let coordinator = Coordinator()
    let (note, copy) = (
      directory.appendingPathComponent("note"), directory.appendingPathComponent("copy")
    )
    try await coordinator.access([.writing(note)]) { access in
      await Task.yield()
      try Data("one".utf8).write(to: access.urls[0])
    }
    try coordinator.access([.reading(note), .replacing(copy)]) { access in
      #expect(access.originalURLs.map(\.lastPathComponent) == ["note", "copy"])
      try Data(contentsOf: access.urls[0]).write(to: access.urls[1])
    }
    #expect(try String(contentsOf: copy, encoding: .utf8) == "one")
    try coordinator.access([.deleting(note)]) { access in
      try FileManager.default.removeItem(at: access.urls[0])
    }
    #expect(!FileManager.default.fileExists(atPath: note.path))
  }

  @Test(.blocking) func aURLThatNamesNoFileIsRefused() throws {
    let other = try #require(URL(string: "other:/place"))
    let peer = try SharedContainer(directory: place).peer("watch")
    let calls: [() throws -> Void] = [
      { _ = try SharedContainer(directory: other) },
      { _ = try peer.send(file: other) },
      { try Coordinator().write(other) { _ in } },
      { try Coordinator().replace(other) { _, _ in } },
      { _ = try Coordinator.Intent.deleting(other) },
    ]
    for call in calls {
      let error = #expect(throws: WormholeError.self) { try call() }
      #expect(error?.code == .invalidName && error?.reason == "the URL does not name a file")
      #expect(error?.subject == "other:/place")
    }
  }
}
