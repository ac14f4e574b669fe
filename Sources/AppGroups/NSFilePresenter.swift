public import Foundation

/// Somebody who shows a file, or a folder with what lies in it, while others use it.
///
/// Tell ``NSFileCoordinator/addFilePresenter(_:)`` of it. All methods are called on
/// ``presentedItemOperationQueue``, and only for accesses of others: in this process or in another
/// one, and never for those of a coordinator that was made with this presenter. Those that are not
/// implemented do nothing.
///
/// An access waits for two seconds at most until a presenter has called what it was given.
public protocol NSFilePresenter: NSObjectProtocol {
  /// What it presents; asked for when the presenter is added, and again when something in it has
  /// changed.
  var presentedItemURL: URL? { get }

  /// Where it is called.
  ///
  /// Do not wait on it for an access: what waits there keeps the presenter from answering others.
  var presentedItemOperationQueue: OperationQueue { get }

  /// Somebody wants to read it.
  ///
  /// - Parameter reader: call it once you hold off, with what is to be called when they have read.
  func relinquishPresentedItem(
    toReader reader: @escaping @Sendable ((@Sendable () -> Void)?) -> Void)

  /// Somebody wants to write it.
  ///
  /// - Parameter writer: call it once you hold off, with what is to be called when they have
  ///   written.
  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable ((@Sendable () -> Void)?) -> Void)

  /// Somebody wants to use it: save what is not saved, with a coordinator that was made with this
  /// presenter.
  ///
  /// - Parameter completionHandler: call it when that is done. An error goes to the log.
  func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void)

  /// Somebody wants to remove it, or a folder that it lies in: close it.
  ///
  /// - Parameter completionHandler: call it when that is done. An error goes to the log.
  func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void)

  /// Somebody wants to remove something in the presented folder: close that.
  ///
  /// - Parameters:
  ///   - url: what is to be removed.
  ///   - completionHandler: call it when that is done. An error goes to the log.
  func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void)

  /// It was moved, and somebody has said so: ``NSFileCoordinator/item(at:didMoveTo:)``.
  ///
  /// It is presented at its new place by now, without being added again; let ``presentedItemURL``
  /// say so. A change is told afterwards.
  func presentedItemDidMove(to newURL: URL)

  /// Somebody may have changed it: read it anew.
  ///
  /// It may come without a change, and several changes may come as one.
  func presentedItemDidChange()

  /// Somebody may have changed something in the presented folder; by default as
  /// ``presentedItemDidChange()``.
  func presentedSubitemDidChange(at url: URL)

  /// Somebody has made something in the presented folder; by default as
  /// ``presentedItemDidChange()``.
  func presentedSubitemDidAppear(at url: URL)

  /// Something in the presented folder was moved, and somebody has said so; by default as
  /// ``presentedItemDidChange()``.
  func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL)
}

extension NSFilePresenter {
  /// Lets them read.
  public func relinquishPresentedItem(
    toReader reader: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) {
    reader(nil)
  }

  /// Lets them write.
  public func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) {
    writer(nil)
  }

  /// There is nothing to save.
  public func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    completionHandler(nil)
  }

  /// There is nothing to close.
  public func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    completionHandler(nil)
  }

  /// There is nothing to close.
  public func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    completionHandler(nil)
  }

  /// Does nothing.
  public func presentedItemDidMove(to newURL: URL) {}

  /// Does nothing.
  public func presentedItemDidChange() {}

  /// As ``presentedItemDidChange()``.
  public func presentedSubitemDidChange(at url: URL) { presentedItemDidChange() }

  /// As ``presentedItemDidChange()``.
  public func presentedSubitemDidAppear(at url: URL) { presentedItemDidChange() }

  /// As ``presentedItemDidChange()``.
  public func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) { presentedItemDidChange() }
}
