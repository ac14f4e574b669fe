public import Foundation

/// A presenter of a file, or of a folder with its content, while others access the file.
///
/// Register a presenter with ``NSFileCoordinator/addFilePresenter(_:)``. All methods are called on
/// ``presentedItemOperationQueue``, and only for accesses of other coordinators: in this process or
/// in another process, and never for the presenter's own coordinators, made with
/// ``NSFileCoordinator/init(filePresenter:)``. Methods that are not implemented do nothing.
///
/// An access waits at most two seconds for a presenter to call its completion handler.
@preconcurrency
public protocol NSFilePresenter: NSObjectProtocol {
  /// The presented item.
  ///
  /// The property is read when the presenter is added, and again when something in the item has
  /// changed.
  var presentedItemURL: URL? { get }

  /// The queue on which the presenter is called.
  ///
  /// Do not wait on this queue for an access: a wait there keeps the presenter from responding to
  /// other accesses.
  var presentedItemOperationQueue: OperationQueue { get }

  /// Asks the presenter to pause, because an access wants to read the item.
  ///
  /// - Parameter reader: call it once the presenter has paused, with a closure that is called after
  ///   the read.
  func relinquishPresentedItem(
    toReader reader: @escaping @Sendable ((() -> Void)?) -> Void)

  /// Asks the presenter to pause, because an access wants to write the item.
  ///
  /// - Parameter writer: call it once the presenter has paused, with a closure that is called after
  ///   the write.
  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable ((() -> Void)?) -> Void)

  /// Asks the presenter to save unsaved changes, because an access wants to use the item; save with
  /// a coordinator that was made with this presenter.
  ///
  /// - Parameter completionHandler: call it when saving is done. An error goes to the log.
  func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void)

  /// Asks the presenter to close the item, because an access wants to remove the item or a folder
  /// that contains it.
  ///
  /// - Parameter completionHandler: call it when the item is closed. An error goes to the log.
  func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void)

  /// Asks the presenter to close an item in the presented folder, because an access wants to remove
  /// that item.
  ///
  /// - Parameters:
  ///   - url: the item to be removed.
  ///   - completionHandler: call it when the item is closed. An error goes to the log.
  func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void)

  /// Reports a move of the item, which the mover has announced with
  /// ``NSFileCoordinator/item(at:didMoveTo:)``.
  ///
  /// The item is already presented at its new location, without being added again; let
  /// ``presentedItemURL`` return the new location. A change is reported afterwards.
  func presentedItemDidMove(to newURL: URL)

  /// Reports that another access may have changed the item: read the item again.
  ///
  /// The call may come without a change, and several changes may cause a single call.
  func presentedItemDidChange()

  /// Reports that another access may have changed an item in the presented folder; by default the
  /// same as ``presentedItemDidChange()``.
  func presentedSubitemDidChange(at url: URL)

  /// Reports that another access has created an item in the presented folder; by default the same
  /// as ``presentedItemDidChange()``.
  func presentedSubitemDidAppear(at url: URL)

  /// Reports an announced move of an item in the presented folder; by default the same as
  /// ``presentedItemDidChange()``.
  func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL)
}

extension NSFilePresenter {
  /// Lets the reader continue.
  public func relinquishPresentedItem(
    toReader reader: @escaping @Sendable ((() -> Void)?) -> Void
  ) {
    reader(nil)
  }

  /// Lets the writer continue.
  public func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable ((() -> Void)?) -> Void
  ) {
    writer(nil)
  }

  /// Reports at once that nothing needs saving.
  public func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    completionHandler(nil)
  }

  /// Reports at once that nothing needs closing.
  public func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    completionHandler(nil)
  }

  /// Reports at once that nothing needs closing.
  public func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    completionHandler(nil)
  }

  /// Does nothing.
  public func presentedItemDidMove(to newURL: URL) {}

  /// Does nothing.
  public func presentedItemDidChange() {}

  /// The same as ``presentedItemDidChange()``.
  public func presentedSubitemDidChange(at url: URL) { presentedItemDidChange() }

  /// The same as ``presentedItemDidChange()``.
  public func presentedSubitemDidAppear(at url: URL) { presentedItemDidChange() }

  /// The same as ``presentedItemDidChange()``.
  public func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) { presentedItemDidChange() }
}
