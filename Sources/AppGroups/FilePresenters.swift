internal import Dispatch
internal import Foundation
internal import Wormhole
internal import WormholeDropIns
internal import WormholeSyscalls

/// The presenters of this process, and the purposes that identify presenters.
enum FilePresenters {
  private struct Added {
    let presenter: Kept
    let subscription: Subscription
  }

  /// A presenter whose purpose a coordinator has requested.
  private struct RegisteredPresenter {
    weak var presenter: (any NSFilePresenter)?
    let purpose: String
    let owner = ProcessCopy.current
  }

  private struct State: @unchecked Sendable {
    // Presenters are called only on their own queues; here they are only retained and compared.
    var added: [ObjectIdentifier: Added] = [:]
    /// Presenters that could not be registered yet, each with the number of its call of `add`.
    var late: [ObjectIdentifier: (presenter: Kept, number: Int)] = [:]
    var known: [ObjectIdentifier: RegisteredPresenter] = [:]
    var numbers = 0
  }

  private struct Kept: @unchecked Sendable {
    // The presenter is called on its own queue alone.
    let presenter: any NSFilePresenter
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
      state.added.values.map { $0.presenter.presenter }
        + state.late.values.map { $0.presenter.presenter }
    }
  }

  static func add(_ presenter: any NSFilePresenter) {
    guard let url = presenter.presentedItemURL else {
      return DropInLog.tell(.warning, "cannot add a file presenter: its presentedItemURL is nil")
    }
    remove(presenter)
    let kept = Kept(presenter: presenter)
    let number = state.withLock { state in
      state.numbers += 1
      state.late[ObjectIdentifier(presenter)] = (kept, state.numbers)
      return state.numbers
    }
    show(kept, at: url, number, isFirst: true)
  }

  /// Registers a presenter for all accesses of others; if the system refuses, tries again later,
  /// because the caller of `add` receives no error.
  private static func show(_ kept: Kept, at url: URL, _ number: Int, isFirst: Bool) {
    let key = ObjectIdentifier(kept.presenter)
    guard state.withLock({ $0.late[key]?.number == number }) else { return }
    let coordinator = Coordinator(purpose: purpose(of: kept.presenter))
    do throws(WormholeError) {
      let subscription = try coordinator.present(url.path, as: calls(of: kept, at: url)) { call in
        kept.presenter.presentedItemOperationQueue.addForSure(call)
      }
      let unwanted = state.withLock { state -> Subscription? in
        guard state.late[key]?.number == number else { return subscription }
        state.late[key] = nil
        return state.added.updateValue(
          Added(presenter: kept, subscription: subscription), forKey: key)?.subscription
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
        show(kept, at: url, number, isFirst: false)
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

  private static func calls(of kept: Kept, at url: URL) -> Coordinator.Presenter {
    // The presenter changes its own URL when the presented item is moved.
    let current: @Sendable () -> URL = { kept.presenter.presentedItemURL ?? url }
    var calls = Coordinator.Presenter()
    calls.relinquish = { use, goOn in
      switch use {
      case .reading: kept.presenter.relinquishPresentedItem(toReader: goOn)
      default: kept.presenter.relinquishPresentedItem(toWriter: goOn)
      }
    }
    calls.save = { done in
      kept.presenter.savePresentedItemChanges { error in
        tell(error, "save", url)
        done()
      }
    }
    calls.delete = { done in
      kept.presenter.accommodatePresentedItemDeletion { error in
        tell(error, "close", url)
        done()
      }
    }
    calls.deleteBelow = { below, done in
      let item = current().appendingPathComponent(below)
      kept.presenter.accommodatePresentedSubitemDeletion(at: item) { error in
        tell(error, "close", item)
        done()
      }
    }
    calls.didMove = { move in
      let new = URL(fileURLWithPath: move.to)
      guard let below = move.oldRelativePath else {
        return kept.presenter.presentedItemDidMove(to: new)
      }
      kept.presenter.presentedSubitem(
        at: current().appendingPathComponent(below),
        didMoveTo: move.newRelativePath.map { current().appendingPathComponent($0) } ?? new)
    }
    calls.didChange = { change in
      guard let below = change.relativePath else { return kept.presenter.presentedItemDidChange() }
      let item = current().appendingPathComponent(below)
      if change.isNew {
        kept.presenter.presentedSubitemDidAppear(at: item)
      } else {
        kept.presenter.presentedSubitemDidChange(at: item)
      }
    }
    return calls
  }

  private static func tell(_ error: (any Error)?, _ verb: String, _ url: URL) {
    guard let error else { return }
    DropInLog.tell(.warning, "the presenter of '\(url.path)' could not \(verb) the file: \(error)")
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
