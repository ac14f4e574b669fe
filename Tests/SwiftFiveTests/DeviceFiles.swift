import AppGroups
import Foundation
import MMWormhole
import WatchConnectivity

// Code in the style of apps that share files and messages: the same file is compiled in Swift 5 and
// in Swift 6 mode, with warnings as errors.

// A presenter that removes itself in its deinit.
class NotePresenter: NSObject, NSFilePresenter {
  var presentedItemURL: URL?
  let presentedItemOperationQueue: OperationQueue
  var changes = 0
  var saves = 0

  init(_ url: URL) {
    presentedItemURL = url
    presentedItemOperationQueue = OperationQueue()
    presentedItemOperationQueue.maxConcurrentOperationCount = 1
    super.init()
    NSFileCoordinator.addFilePresenter(self)
  }

  deinit { NSFileCoordinator.removeFilePresenter(self) }

  func relinquishPresentedItem(toReader reader: @escaping ((() -> Void)?) -> Void) {
    reader { self.changes += 1 }
  }

  func relinquishPresentedItem(toWriter writer: @escaping ((() -> Void)?) -> Void) {
    writer(nil)
  }

  func savePresentedItemChanges(completionHandler: @escaping (Error?) -> Void) {
    saves += 1
    completionHandler(nil)
  }

  func accommodatePresentedItemDeletion(completionHandler: @escaping (Error?) -> Void) {
    completionHandler(nil)
  }

  func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping (Error?) -> Void
  ) {
    completionHandler(nil)
  }

  func presentedItemDidMove(to newURL: URL) { presentedItemURL = newURL }
  func presentedItemDidChange() { changes += 1 }

  func save(_ text: String, completion: @escaping (Error?) -> Void) {
    guard let url = presentedItemURL else { return }
    let intent = NSFileAccessIntent.writingIntent(with: url, options: .forReplacing)
    NSFileCoordinator(filePresenter: self).coordinate(
      with: [intent], queue: presentedItemOperationQueue
    ) { error in
      self.saves += 1
      try? text.write(to: intent.url, atomically: true, encoding: .utf8)
      completion(error)
    }
  }
}

// A named function as the callback of Darwin notifications.
func noteDidChange(
  center: CFNotificationCenter?, observer: UnsafeMutableRawPointer?, name: CFNotificationName?,
  object: UnsafeRawPointer?, userInfo: CFDictionary?
) {
  guard let observer = observer else { return }
  Unmanaged<NoteObserver>.fromOpaque(observer).takeUnretainedValue().count += 1
}

class NoteObserver {
  var count = 0

  func start(_ name: CFString) {
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    let pointer = Unmanaged.passUnretained(self).toOpaque()
    CFNotificationCenterAddObserver(
      center, pointer, noteDidChange, name, nil, .deliverImmediately)
  }

  func stop() {
    CFNotificationCenterRemoveEveryObserver(
      CFNotificationCenterGetDarwinNotifyCenter(), Unmanaged.passUnretained(self).toOpaque())
  }
}

@MainActor final class NoteModel {
  var titles: [String] = []
  let wormhole: MMWormhole
  var didHear: () -> Void = {}

  init(group: String) {
    wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: nil)
  }

  func listen(on queue: DispatchQueue) {
    wormhole.listenerQueue = queue
    wormhole.failureHandler = { error in self.titles.append("\(error)") }
    wormhole.listenForMessage(withIdentifier: "title") { message in
      self.titles.append(message as? String ?? "nothing")
      self.didHear()
    }
    wormhole.listenForMessage(withIdentifier: "other", listener: heard)
  }

  func heard(_ message: Any?) {
    titles.append("other")
    didHear()
  }

  func ask() {
    WKInterfaceController.openParentApplication(["request": "titles"]) { reply, error in
      self.titles = reply["titles"] as? [String] ?? []
    }
  }
}

// A transport of the app's own, which is not Sendable.
class CountingTransit: MMWormholeTransiting {
  var messages: [String: NSCoding] = [:]
  var writes = 0

  func writeMessageObject(_ messageObject: NSCoding?, forIdentifier identifier: String) -> Bool {
    writes += 1
    messages[identifier] = messageObject
    return false
  }

  func messageObject(forIdentifier identifier: String?) -> NSCoding? {
    return identifier.flatMap { messages[$0] }
  }

  func deleteContent(forIdentifier identifier: String?) {
    if let identifier = identifier { messages[identifier] = nil }
  }

  func deleteContentForAllMessages() { messages = [:] }
}

// Subclasses as the headers permit them.
class LoggingTransit: MMWormholeCoordinatedFileTransiting {
  var reads = 0

  override func messageObject(forIdentifier identifier: String?) -> NSCoding? {
    reads += 1
    return super.messageObject(forIdentifier: identifier)
  }

  override func messagePassingDirectoryPath() -> String? {
    fileManager = FileManager()
    return super.messagePassingDirectoryPath()
  }
}

class ContextTransit: MMWormholeSessionContextTransiting {
  var writes = 0

  override func writeMessageObject(
    _ messageObject: NSCoding?, forIdentifier identifier: String
  ) -> Bool {
    writes += 1
    return super.writeMessageObject(messageObject, forIdentifier: identifier)
  }
}

class CountingWormhole: MMWormhole {
  var listeners = 0
  var heard = 0

  override func listenForMessage(withIdentifier identifier: String?, listener: ((Any?) -> Void)?) {
    listeners += 1
    super.listenForMessage(withIdentifier: identifier) { message in
      self.heard += 1
      listener?(message)
    }
  }
}

class WatchWormhole: MMWormholeSession {
  var heard = 0

  override func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    heard += 1
    super.session(session, didReceiveMessage: message)
  }
}

class SizeSettings {
  let defaults: UserDefaults

  init(group: String) { defaults = UserDefaults(suiteName: group)! }

  var width: CGFloat {
    get { return defaults.value(forKey: "width") as? CGFloat ?? 0 }
    set { defaults.setValue(newValue, forKey: "width") }
  }

  var sizes: [String: CGFloat] {
    get { return defaults.object(forKey: "sizes") as? [String: CGFloat] ?? [:] }
    set { defaults.set(newValue, forKey: "sizes") }
  }
}
