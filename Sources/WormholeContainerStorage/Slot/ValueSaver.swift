internal import WormholeSyscalls

/// Saves values soon after commits without a sync: see ``SlotSaveState``.
///
/// A process has one saver for all its containers on a file system, because a file system that does
/// not respond must not delay the others. Several values that are due together are synced together,
/// in one call at a time, on a thread of the module above: see ``ContainerOptions/callLater``. The
/// thread that renews heartbeats cannot do this, because a sync may take seconds.
final class ValueSaver: Service {
  private struct Entry {
    let container: Container
    weak var slot: Slot?
    let place: Place
    let saving: SlotSaveState
    var due: Instant

    /// Identifies a slot in its container.
    struct Place: Equatable {
      let folder: Container.Folder
      let name: String
    }

    init(_ slot: Slot, due: Instant) {
      container = slot.container
      self.slot = slot
      place = Place(folder: slot.folder, name: slot.name)
      saving = slot.saving
      self.due = due
    }

    /// Begins the save; a slot that was released is opened again.
    func begin(_ patience: Patience) -> PendingSave? {
      if let slot { return slot.beginSave(patience) }
      let again = try? container.slot(place.folder, place.name)
      return again?.beginSave(of: saving, patience)
    }
  }

  private struct State {
    var entries: [Entry] = []
    /// The containers whose slots are being saved, once for each slot.
    var inProgress: [ObjectIdentifier] = []
    /// The moment of the next call.
    var nextCall: Instant?
    /// Whether a call is in progress: it requests the next call at its end.
    var isCalled = false

    /// Removes the entries that satisfy the condition, up to a limit.
    mutating func take(_ limit: Int, where isWanted: (Entry) -> Bool) -> [Entry] {
      var taken: [Entry] = []
      entries.removeAll { entry in
        guard taken.count < limit, isWanted(entry) else { return false }
        taken.append(entry)
        return true
      }
      inProgress += taken.map { ObjectIdentifier($0.container) }
      return taken
    }

    /// Notes the call that the waiting entries need; nil if a call was noted that is early enough.
    mutating func noteCall() -> CallRequest? {
      guard !isCalled, let first = entries.min(by: { $0.due < $1.due }),
        nextCall.map({ first.due < $0 }) ?? true,
        let callLater = first.container.options.callLater
      else { return nil }
      nextCall = first.due
      return CallRequest(moment: first.due, callLater: callLater)
    }
  }

  private struct CallRequest {
    let moment: Instant
    let callLater: CallLater
  }

  /// The largest number of waiting values: each keeps its file open.
  private static let limit = 32
  /// The largest number of values that are synced together.
  private static let batch = 32

  private let monitor = Monitor(State())

  private static let savers = OneForEachProcess { Savers() }

  private final class Savers: Sendable {
    /// A saver is retained by the containers of its file system.
    struct Place { weak var saver: ValueSaver? }
    let known = Monitor<[UInt64: Place]>([:])
  }

  static func saver(of device: UInt64) -> ValueSaver {
    savers.current.known.withLock { known in
      if let saver = known[device]?.saver { return saver }
      let saver = ValueSaver()
      // A device number may never come again.
      known = known.filter { $0.value.saver != nil }
      known[device] = Savers.Place(saver: saver)
      return saver
    }
  }

  private static var all: [ValueSaver] {
    savers.existing?.known.withLock { $0.values.compactMap(\.saver) } ?? []
  }

  /// Requests a save of the slot's latest value; false if too many values wait.
  func add(_ slot: Slot, due: Instant) -> Bool {
    var entry = Entry(slot, due: due)
    let (isAdded, request) = monitor.withLock { state -> (Bool, CallRequest?) in
      // A program that requests a channel anew for each change has one entry for it, whose save is
      // not put off by further changes.
      let earlier = state.entries.firstIndex {
        $0.container === entry.container && $0.place == entry.place
      }
      if let earlier { entry.due = min(due, state.entries.remove(at: earlier).due) }
      guard state.entries.count < Self.limit else { return (false, nil) }
      state.entries.append(entry)
      return (true, state.noteCall())
    }
    perform(request)
    return isAdded
  }

  private func perform(_ request: CallRequest?) {
    guard let request else { return }
    request.callLater(request.moment) { self.saveDue() }
  }

  /// Saves the values that are due, on a thread of the module above.
  func saveDue() {
    let now = Instant.now
    let due = monitor.withLock { state -> [Entry] in
      if let next = state.nextCall, next <= now { state.nextCall = nil }
      // An earlier call takes the entries at its end.
      guard !state.isCalled else { return [] }
      let due = state.take(Self.batch) { $0.due <= now }
      state.isCalled = !due.isEmpty
      return due
    }
    save(due)
    perform(
      monitor.withLock { state in
        if !due.isEmpty { state.isCalled = false }
        return state.noteCall()
      })
  }

  /// Saves all waiting values of a container now, on the calling thread, and waits for saves in
  /// progress.
  ///
  /// - Parameter container: nil for all containers.
  func finish(_ container: Container?) {
    while true {
      let due = monitor.withLock { state in
        state.take(Self.batch) { container == nil || $0.container === container }
      }
      guard !due.isEmpty else { break }
      save(due)
    }
    let _: Void? = monitor.wait(until: nil) { state in
      guard let container else { return state.inProgress.isEmpty ? () : nil }
      return state.inProgress.contains(ObjectIdentifier(container)) ? nil : ()
    }
  }

  /// As ``finish(_:)``, for all containers of the process.
  static func finishAll() { for saver in all { saver.finish(nil) } }

  private func save(_ entries: [Entry]) {
    guard !entries.isEmpty else { return }
    let now = Instant.now
    var saves = entries.compactMap { entry in
      entry.begin(Patience(until: now + entry.container.options.keptAge))
    }
    // The first sync then writes the journal for all of them.
    if saves.count > 1 { for save in saves { save.file.startWriting() } }
    for index in saves.indices { saves[index].sync() }
    let synced = Instant.now
    for save in saves {
      save.slot.endSave(save, Patience(until: synced + save.slot.container.options.keptAge))
    }
    monitor.signal { state in
      for entry in entries {
        let place = state.inProgress.firstIndex(of: ObjectIdentifier(entry.container))
        if let place { state.inProgress.remove(at: place) }
      }
    }
  }
}

extension Container {
  var saver: ValueSaver { services.get { .saver(of: identity.device) } }

  /// Syncs the values that this instance has committed without a sync, and waits for the disk.
  ///
  /// Without effect inside an update of the container: the save would wait for this very update.
  package func finishSaving() {
    guard isOwned, !UpdatesUnderWay.isInside(identity) else { return }
    saver.finish(self)
  }

  /// As ``finishSaving()``, for all containers of the process.
  package static func finishSaving() { ValueSaver.finishAll() }
}
