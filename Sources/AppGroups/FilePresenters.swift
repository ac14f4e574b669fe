internal import Dispatch
internal import Foundation
internal import Wormhole
internal import WormholeDropIns
internal import WormholeSyscalls

/// The presenters of this process, and the purposes that identify presenters.
enum FilePresenters {
  private struct PresenterRegistration {
    let presenter: Reference
    let subscription: Subscription
  }

  /// A presenter whose purpose a coordinator has requested.
  private struct RegisteredPresenter {
    weak var presenter: (any NSFilePresenter)?
    let purpose: String
    let owner = ProcessCopy.current
  }

  private struct State: @unchecked Sendable {
    // Presenters are called only on their own queues; here they are only compared.
    var added: [ObjectIdentifier: PresenterRegistration] = [:]
    /// Presenters that could not be registered yet, each with the number of its call of `add`.
    var late: [ObjectIdentifier: (presenter: Reference, number: Int)] = [:]
    var known: [ObjectIdentifier: RegisteredPresenter] = [:]
    var numbers = 0
  }

  /// A presenter that its program retains, or has released.
  ///
  /// Devices retain no presenter either, and much code removes a presenter in its `deinit`.
  private final class Reference: @unchecked Sendable {
    // The presenter is called on its own queue alone.
    private(set) weak var presenter: (any NSFilePresenter)?
    /// The presenter's address, which a later object may have.
    let key: ObjectIdentifier

    init(_ presenter: any NSFilePresenter) {
      self.presenter = presenter
      key = ObjectIdentifier(presenter)
    }
  }

  private static let state = Monitor(State())
  private static let process = Coordinator()

  /// Returns the purpose of a presenter: coordinators that were made with the presenter neither ask
  /// nor notify it.
  static func purpose(of presenter: any NSFilePresenter) -> String {
    // All other owners may release a presenter during its examination here. The presenter's
    // `deinit` then runs here, and may call code that takes the lock. Therefore the presenter is
    // retained until the lock is free.
    var looked: [any NSFilePresenter] = []
    defer { withExtendedLifetime(looked) {} }
    return state.withLock { state in
      func isThere(_ known: RegisteredPresenter) -> Bool {
        // In a forked child the entry belongs to the parent process.
        guard known.owner.isCurrent, let presenter = known.presenter else { return false }
        looked.append(presenter)
        return true
      }
      let number = ObjectIdentifier(presenter)
      if let known = state.known[number], isThere(known) { return known.purpose }
      state.known = state.known.filter { isThere($0.value) }
      state.numbers += 1
      let purpose = "\(process.purpose).\(state.numbers)"
      state.known[number] = RegisteredPresenter(presenter: presenter, purpose: purpose)
      return purpose
    }
  }

  static var all: [any NSFilePresenter] {
    state.withLock { state in
      state.added.values.compactMap { $0.presenter.presenter }
        + state.late.values.compactMap { $0.presenter.presenter }
    }
  }

  static func add(_ presenter: any NSFilePresenter) {
    remove(presenter)
    guard let url = presenter.presentedItemURL else {
      return DropInLog.tell(.warning, "cannot add a file presenter: its presentedItemURL is nil")
    }
    removeReleased()
    let reference = Reference(presenter)
    let number = state.withLock { state in
      state.numbers += 1
      state.late[reference.key] = (reference, state.numbers)
      return state.numbers
    }
    show(reference, at: url, number, isFirst: true)
  }

  /// Registers a presenter for all accesses of others; if the system refuses, tries again later,
  /// because the caller of `add` receives no error.
  private static func show(_ reference: Reference, at url: URL, _ number: Int, isFirst: Bool) {
    let key = reference.key
    guard state.withLock({ $0.late[key]?.number == number }) else { return }
    guard let presenter = reference.presenter else { return end(reference) }
    let coordinator = Coordinator(purpose: purpose(of: presenter))
    do throws(WormholeError) {
      let calls = calls(of: reference, at: url)
      let subscription = try coordinator.present(url.path, as: calls) { call in
        // The call of a released presenter replies at once.
        guard let presenter = reference.presenter else { return call() }
        presenter.presentedItemOperationQueue.addForSure(call)
      }
      let unwanted = state.withLock { state -> Subscription? in
        guard state.late[key]?.number == number else { return subscription }
        state.late[key] = nil
        return state.added.updateValue(
          PresenterRegistration(presenter: reference, subscription: subscription), forKey: key)?
          .subscription
      }
      // Another thread has removed the presenter in the meantime, or has added it too.
      unwanted?.stop()
    } catch {
      let mayPass = error.errno != nil
      if isFirst || !mayPass { DropInLog.tell(.error, error) }
      guard mayPass else {
        return state.withLock { if $0.late[key]?.number == number { $0.late[key] = nil } }
      }
      DispatchQueue.global().soon(after: .seconds(1)) {
        show(reference, at: url, number, isFirst: false)
      }
    }
  }

  static func remove(_ presenter: any NSFilePresenter) {
    let added = state.withLock { state in
      state.late[ObjectIdentifier(presenter)] = nil
      return state.added.removeValue(forKey: ObjectIdentifier(presenter))
    }
    added?.subscription.stop()
  }

  /// Removes a presenter that its program has released without removing it.
  private static func end(_ reference: Reference) {
    let subscription = state.withLock { state -> Subscription? in
      let key = reference.key
      if state.late[key]?.presenter === reference { state.late[key] = nil }
      guard state.added[key]?.presenter === reference else { return nil }
      return state.added.removeValue(forKey: key)?.subscription
    }
    subscription?.stop()
  }

  /// The release of an object is not reported: released presenters are found at the next call for
  /// them, and when another presenter is added.
  private static func removeReleased() {
    var looked: [any NSFilePresenter] = []
    defer { withExtendedLifetime(looked) {} }
    let released = state.withLock { state in
      (state.added.values.map(\.presenter) + state.late.values.map(\.presenter)).filter {
        // Retained until the lock is free, see `purpose(of:)`.
        guard let presenter = $0.presenter else { return true }
        looked.append(presenter)
        return false
      }
    }
    for reference in released { end(reference) }
  }

  /// Calls a method of the presenter; if the presenter was released, replies in its place and ends
  /// its registration.
  private static func call(
    _ reference: Reference, _ body: (any NSFilePresenter) -> Void, otherwise reply: () -> Void = {}
  ) {
    if let presenter = reference.presenter { return body(presenter) }
    reply()
    // Not here: the end waits for the call in progress.
    DispatchQueue.global().async { end(reference) }
  }

  /// Calls a method of the presenter that takes a closure for its end, and logs an error.
  private static func call(
    _ reference: Reference, _ done: @escaping @Sendable () -> Void, _ verb: String, _ url: URL,
    _ body: (any NSFilePresenter, @escaping @Sendable ((any Error)?) -> Void) -> Void
  ) {
    call(reference) { presenter in
      body(presenter) { error in
        if let error {
          DropInLog.tell(
            .warning, "the presenter of '\(url.path)' could not \(verb) the file: \(error)")
        }
        done()
      }
    } otherwise: {
      done()
    }
  }

  private static func calls(of reference: Reference, at url: URL) -> Coordinator.Presenter {
    // The presenter changes its own URL when the presented item is moved.
    let current: @Sendable () -> URL = { reference.presenter?.presentedItemURL ?? url }
    var calls = Coordinator.Presenter()
    calls.relinquish = { use, goOn in
      call(reference) { presenter in
        // The presenter's closure is called where the module calls the presenter, on its queue.
        let goOn: @Sendable ((() -> Void)?) -> Void = { again in
          goOn(again.map { UncheckedBox($0) }.map { again in { again.value() } })
        }
        switch use {
        case .reading: presenter.relinquishPresentedItem(toReader: goOn)
        default: presenter.relinquishPresentedItem(toWriter: goOn)
        }
      } otherwise: {
        goOn(nil)
      }
    }
    calls.save = { done in
      call(reference, done, "save", url) { $0.savePresentedItemChanges(completionHandler: $1) }
    }
    calls.delete = { done in
      call(reference, done, "close", url) {
        $0.accommodatePresentedItemDeletion(completionHandler: $1)
      }
    }
    calls.deleteBelow = { below, done in
      let item = current().appendingPathComponent(below)
      call(reference, done, "close", item) {
        $0.accommodatePresentedSubitemDeletion(at: item, completionHandler: $1)
      }
    }
    calls.didMove = { move in
      call(reference) { presenter in
        let new = URL(fileURLWithPath: move.to)
        guard let below = move.oldRelativePath else {
          return presenter.presentedItemDidMove(to: new)
        }
        presenter.presentedSubitem(
          at: current().appendingPathComponent(below),
          didMoveTo: move.newRelativePath.map { current().appendingPathComponent($0) } ?? new)
      }
    }
    calls.didChange = { change in
      call(reference) { presenter in
        guard let below = change.relativePath else { return presenter.presentedItemDidChange() }
        let item = current().appendingPathComponent(below)
        if change.isNew {
          presenter.presentedSubitemDidAppear(at: item)
        } else {
          presenter.presentedSubitemDidChange(at: item)
        }
      }
    }
    return calls
  }
}

extension OperationQueue {
  /// Calls a closure on the queue, even if the program cancels the queue's operations: accesses
  /// wait for the call.
  fileprivate func addForSure(_ call: @escaping @Sendable () -> Void) {
    let isCalled = Monitor(false)
    let operation = BlockOperation {
      isCalled.withLock { $0 = true }
      call()
    }
    operation.completionBlock = { [weak self] in
      if !isCalled.withLock({ $0 }) { self?.addForSure(call) }
    }
    addOperation(operation)
  }
}
