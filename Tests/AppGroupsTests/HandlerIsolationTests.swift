import AppGroups
import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Where closures of the program's are called: on their actor, or on the queue that it names.
@Suite(.blocking) struct HandlerIsolationTests {
  private let name: String
  private let busy = OperationQueue()

  init() throws {
    try GroupsRoot.use()
    name = "test.\(UUID().uuidString)"
    busy.name = "busy"
  }

  private static let mainKey = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  private static func place() -> String {
    if DispatchQueue.getSpecific(key: mainKey) == true { return "main" }
    return OperationQueue.current?.name == "busy" ? "busy" : "elsewhere"
  }

  /// Handlers as they are written in a class of the main actor, which use its properties.
  @MainActor private final class Desk {
    nonisolated let heard = Heard<String>()
    var count = 0
    private var observation: AnyCancellable?
    private var token = NOTIFY_TOKEN_INVALID

    func save(_ url: URL, on queue: OperationQueue) {
      NSFileCoordinator().coordinate(with: [.writingIntent(with: url)], queue: queue) { error in
        self.note(error == nil ? "saved" : "not saved")
      }
      // A file that cannot be: the accessor receives the error.
      let none = URL(fileURLWithPath: "/" + String(repeating: "x", count: 5000))
      NSFileCoordinator().coordinate(with: [.writingIntent(with: none)], queue: queue) { error in
        self.note(error == nil ? "saved anywhere" : "failed")
      }
    }

    func listen(_ name: String) throws {
      observation = try DarwinNotification(name).observe(on: .global()) { self.note("observed") }
      notify_register_dispatch(name, &token, .global()) { _ in self.note("registered") }
    }

    func stop() {
      observation?.cancel()
      notify_cancel(token)
    }

    private func note(_ words: String) {
      count += 1
      heard.add("\(words) \(HandlerIsolationTests.place())")
    }
  }

  @Test func handlersOfTheMainActorRunThereWhateverTheQueue() throws {
    let folder = try TemporaryDirectory()
    let (busy, name) = (busy, name)
    let url = URL(fileURLWithPath: folder.path + "/note")
    let desk = try DispatchQueue.main.sync {
      try MainActor.assumeIsolated {
        let desk = Desk()
        desk.save(url, on: busy)
        try desk.listen(name)
        return desk
      }
    }
    notify_post(name)
    #expect(throws: Never.self) {
      try desk.heard.wait("all calls on the main queue") {
        Set($0) == ["saved main", "failed main", "observed main", "registered main"]
      }
    }
    DispatchQueue.main.sync { MainActor.assumeIsolated { desk.stop() } }
  }

  @Test func anAccessorWithoutAnIsolationRunsOnItsQueue() throws {
    let (folder, heard) = (try TemporaryDirectory(), Heard<String>())
    let url = URL(fileURLWithPath: folder.path + "/note")
    NSFileCoordinator().coordinate(with: [.writingIntent(with: url)], queue: busy) { _ in
      heard.add(Self.place())
    }
    try heard.wait("the call") { $0 == ["busy"] }
  }

  private actor Archive {
    nonisolated let heard = Heard<Bool>()

    func save(_ url: URL, on queue: OperationQueue) {
      NSFileCoordinator().coordinate(with: [.writingIntent(with: url)], queue: queue) { _ in
        self.preconditionIsolated()
        self.heard.add(true)
      }
    }
  }

  @Test func anAccessorOfAnActorRunsThere() throws {
    let (folder, archive) = (try TemporaryDirectory(), Archive())
    let (url, busy) = (URL(fileURLWithPath: folder.path + "/note"), busy)
    Task { await archive.save(url, on: busy) }
    try archive.heard.wait("the call") { $0 == [true] }
  }

  /// A function has no isolation; an app's code expects the call on the main queue.
  @Test func aFunctionIsCalledOnTheMainQueue() throws {
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    let observer = NamedObserver()
    let pointer = Unmanaged.passUnretained(observer).toOpaque()
    CFNotificationCenterAddObserver(
      center, pointer, nameDidChange, name as CFString, nil, .deliverImmediately)
    notify_post(name)
    try observer.heard.wait("the call") { $0 == ["main"] }
    CFNotificationCenterRemoveEveryObserver(center, pointer)
  }

  private final class NamedObserver: Sendable {
    let heard = Heard<String>()
  }

  fileprivate static func call(_ observer: UnsafeMutableRawPointer?) {
    guard let observer else { return }
    Unmanaged<NamedObserver>.fromOpaque(observer).takeUnretainedValue().heard.add(place())
  }
}

private func nameDidChange(
  center: CFNotificationCenter?, observer: UnsafeMutableRawPointer?, name: CFNotificationName?,
  object: UnsafeRawPointer?, userInfo: CFDictionary?
) {
  HandlerIsolationTests.call(observer)
}
