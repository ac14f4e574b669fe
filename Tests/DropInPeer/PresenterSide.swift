import AppGroups
import Foundation
import WormholeCTesting
import WormholeSyscalls

/// Presents a file as an editor with unsaved changes does: prints the requests and notices that it
/// receives, and writes its changes when another program asks for them.
final class PresenterSide: NSObject, NSFilePresenter, @unchecked Sendable {
  // Called only on the presenter's queue, which runs its operations in order.
  private var url: URL
  private let text: String
  let presentedItemOperationQueue = OperationQueue()
  var presentedItemURL: URL? { url }

  private init(_ url: URL, _ text: String) {
    (self.url, self.text) = (url, text)
    presentedItemOperationQueue.maxConcurrentOperationCount = 1
  }

  private static let shown = Monitor<PresenterSide?>(nil)

  static func run(_ path: String, _ text: String) {
    let side = PresenterSide(URL(fileURLWithPath: path), text)
    NSFileCoordinator.addFilePresenter(side)
    // The coordinator does not retain the presenter.
    shown.withLock { $0 = side }
    side.say("presenting")
    dispatchMain()
  }

  // Written once, before the process forks a child.
  private nonisolated(unsafe) static var inheritance: (coordinator: NSFileCoordinator, url: URL)?
  // As above.
  private nonisolated(unsafe) static var purpose: String?

  /// Presents a file, and has a forked child write it with a coordinator of the parent's presenter.
  ///
  /// - Parameter namesPurpose: whether the child gives the coordinator a purpose first.
  static func fork(_ path: String, namesPurpose: Bool) {
    let side = PresenterSide(URL(fileURLWithPath: path), "parent")
    NSFileCoordinator.addFilePresenter(side)
    shown.withLock { $0 = side }
    inheritance = (NSFileCoordinator(filePresenter: side), side.url)
    purpose = namesPurpose ? UUID().uuidString : nil
    let end = forking_do(0) { PresenterSide.writeInChild() }
    side.say("the child ended: \(end)")
    dispatchMain()
  }

  private static func writeInChild() {
    let (coordinator, url) = inheritance!
    if let purpose { coordinator.purposeIdentifier = purpose }
    var error: NSError?
    coordinator.coordinate(writingItemAt: url, error: &error) { url in
      try? Data("child".utf8).write(to: url)
    }
    if let error { try? StandardStream.error.write("\(error)\n") }
  }

  /// Two threads make presenters and release them again, while each thread asks for all presenters.
  static func comeAndGo(_ count: Int) {
    DispatchQueue.concurrentPerform(iterations: 2) { _ in
      for _ in 0..<count {
        let presenter = FleetingPresenter()
        _ = NSFileCoordinator(filePresenter: presenter)
      }
    }
  }

  private func say(_ words: String) {
    FileHandle.standardOutput.write(Data((words + "\n").utf8))
  }

  func relinquishPresentedItem(
    toReader reader: @escaping @Sendable ((() -> Void)?) -> Void
  ) {
    say("reader")
    reader { self.say("again") }
  }

  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable ((() -> Void)?) -> Void
  ) {
    say("writer")
    writer { self.say("again") }
  }

  func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    var error: NSError?
    NSFileCoordinator(filePresenter: self).coordinate(
      writingItemAt: url, options: .forReplacing, error: &error
    ) { new in
      try? Data(text.utf8).write(to: new)
    }
    say(error == nil ? "saved" : "not saved")
    completionHandler(error)
  }

  func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    say("delete")
    completionHandler(nil)
  }

  func presentedItemDidMove(to newURL: URL) {
    url = newURL
    say("moved to \(newURL.lastPathComponent)")
  }

  func presentedItemDidChange() {
    var text = ""
    NSFileCoordinator(filePresenter: self).coordinate(readingItemAt: url, error: nil) { url in
      text = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
    }
    say("shows \(text)")
  }
}

/// Removes itself at its end, as presenters do.
private final class FleetingPresenter: NSObject, NSFilePresenter, @unchecked Sendable {
  // It holds nothing that changes.
  let presentedItemOperationQueue = OperationQueue.main
  var presentedItemURL: URL? { nil }
  deinit { NSFileCoordinator.removeFilePresenter(self) }
}
