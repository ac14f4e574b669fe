internal import Synchronization
internal import WormholeSyscalls

/// Calls to inotify in progress.
///
/// The calls run outside the watcher's lock, since inotify uses the file system, which may not
/// respond: a hanging file system delays only the threads that add watches in its directories.
/// Concurrent changes must therefore not invalidate the result of a call:
///
/// - A directory always has the same number, also for a thread whose call has not returned. An
///   unused number is returned to inotify only when no call is in progress.
/// - The end of a directory may be reported before its number is known here; the end is recorded
///   until then.
/// - A pause replaces the registered events of a directory. It does not start while any call
///   registers, and a thread that registers the directory during the pause registers again
///   afterwards.
struct WatcherCalls {
  /// The number of calls in progress, and how many of them register a listener.
  private(set) var count = 0
  private(set) var registering = 0
  fileprivate(set) var pausing: Set<CInt> = []
  /// Numbers to return to inotify, unless a listener uses them by then.
  fileprivate var unneeded: Set<CInt> = []
  /// Numbers whose directories ended during the calls.
  fileprivate var gone: Set<CInt> = []
  /// Whether inotify is being tried again for polled listeners.
  fileprivate var isUpgrading = false

  mutating func begin() { count += 1 }

  mutating func beginRegistering() {
    count += 1
    registering += 1
  }

  mutating func hear(endOf number: CInt) { if count > 0 { gone.insert(number) } }

  fileprivate mutating func end(registering isRegistering: Bool) {
    count -= 1
    if isRegistering { registering -= 1 }
  }
}

extension Watcher.State {
  /// Returns an unused number to inotify.
  mutating func forget(_ number: CInt) {
    if calls.count > 0 {
      calls.unneeded.insert(number)
    } else {
      try? instance?.unwatch(number)
    }
  }

  /// Ends a call.
  mutating func endCall(registering: Bool = false) {
    calls.end(registering: registering)
    guard calls.count == 0 else { return }
    for number in calls.unneeded where watches[number] == nil {
      try? instance?.unwatch(number)
    }
    (calls.unneeded, calls.gone) = ([], [])
    restIfUnused()
  }

  /// Releases the threads and the instance when there are no listeners.
  mutating func restIfUnused() {
    guard watches.isEmpty, polled.isEmpty, calls.count == 0 else { return }
    instance = nil
    crew.take()?.wakeUp.raise()
  }
}

extension Watcher {
  /// Registers a listener with inotify; the caller has recorded the call.
  ///
  /// - Parameter isPolled: whether the listener was polled until now, and has to check once more.
  /// - Returns: the reason why the listener has to be polled, or nil.
  func register(
    _ watch: DirectoryWatch, _ directory: borrowing Descriptor, isPolled: Bool = false
  ) -> String? {
    var number: CInt?
    let failure = Errno.of { () throws(Errno) in number = try ask(watch, directory) }
    let isGone = state.withLock { state in
      defer { state.endCall(registering: true) }
      // The listener may have been stopped.
      let isWanted = !isPolled || state.polled[ObjectIdentifier(watch)] != nil
      guard let number else {
        if isWanted { poll(watch, &state) }
        return false
      }
      guard isWanted else {
        if state.watches[number] == nil { state.forget(number) }
        return false
      }
      watch.number.store(number, ordering: .relaxed)
      if isPolled { state.upgraded.insert(ObjectIdentifier(watch)) }
      if state.calls.gone.contains(number) { return true }
      state.watches[number] = (state.watches[number] ?? []) + [watch]
      return false
    }
    if isGone { watch.tell(.gone) }
    return failure.map { "inotify failed: \($0)" }
  }

  private func ask(_ watch: DirectoryWatch, _ directory: borrowing Descriptor) throws(Errno) -> CInt
  {
    let (instance, pausing) = try state.withLock {
      state throws(Errno) -> (Inotify, Set<CInt>) in
      (try self.instance(&state), state.calls.pausing)
    }
    let number = try instance.watch(directory, watch.mask)
    guard pausing.contains(number) else { return number }
    // Without a deadline: the pause waits for the same file system.
    let _: Void? = state.wait(until: nil) { $0.calls.pausing.contains(number) ? nil : () }
    return try instance.watch(directory, watch.mask)
  }

  private func instance(_ state: inout State) throws(Errno) -> Inotify {
    if let instance = state.instance { return instance }
    let instance = try Inotify()
    try crew(&state).waits.add(instance.descriptor, as: WatcherCrew.notices)
    state.instance = instance
    return instance
  }

  // MARK: Pauses

  /// Pauses all notices but that of the directory's end; false if the directory has further
  /// listeners, or if pausing is not possible.
  func pause(_ watch: DirectoryWatch) -> Bool {
    guard let directory = watch.directory else { return false }
    let begun = state.withLock { state -> (Inotify, CInt)? in
      let number = watch.number.load(ordering: .relaxed)
      // A call that registers now may be for the same directory.
      guard state.calls.registering == 0, state.watches[number]?.count == 1,
        let instance = state.instance
      else { return nil }
      state.calls.begin()
      state.calls.pausing.insert(number)
      return (instance, number)
    }
    guard let (instance, number) = begun else { return false }
    let found = try? instance.watch(directory.descriptor, .selfDeleted)
    return state.signal { state in
      state.calls.pausing.remove(number)
      defer { state.endCall() }
      // The directory's end was reported, and its number now belongs to a directory without
      // listeners.
      if let found, found != number { state.forget(found) }
      return found == number && state.watches[number] != nil
    }
  }

  func resume(_ watch: DirectoryWatch) {
    guard let directory = watch.directory else { return }
    let begun = state.withLock { state -> (Inotify, CInt)? in
      let number = watch.number.load(ordering: .relaxed)
      guard let instance = state.instance,
        state.watches[number]?.contains(where: { $0 === watch }) == true
      else { return nil }
      state.calls.begin()
      return (instance, number)
    }
    guard let (instance, number) = begun else { return }
    let found = try? instance.watch(directory.descriptor, watch.mask)
    state.withLock { state in
      defer { state.endCall() }
      if let found {
        if found != number { state.forget(found) }
        return
      }
      guard state.watches[number]?.contains(where: { $0 === watch }) == true else { return }
      // The directory was watched before, and now cannot be watched.
      state.watches[number]?.removeAll { $0 === watch }
      if state.watches[number]?.isEmpty == true {
        state.watches[number] = nil
        state.forget(number)
      }
      watch.number.store(-1, ordering: .relaxed)
      poll(watch, &state)
    }
  }

  // MARK: Polled listeners

  /// Tries inotify again for polled listeners, on another thread, since this one serves all
  /// listeners.
  func upgrade(_ polled: [DirectoryWatch], _ crew: WatcherCrew) {
    let due = polled.filter { $0.directory != nil && $0.canBeTold && $0.isPolling }
    let begins = state.withLock { state in
      guard !due.isEmpty, !state.calls.isUpgrading else { return false }
      state.calls.isUpgrading = true
      return true
    }
    guard begins else { return }
    soon { [self] in
      for watch in due { upgrade(watch, crew) }
      state.withLock { $0.calls.isUpgrading = false }
    }
  }

  private func upgrade(_ watch: DirectoryWatch, _ crew: WatcherCrew) {
    guard let directory = watch.directory else { return }
    let begins = state.withLock { state in
      guard state.crew === crew, state.polled[ObjectIdentifier(watch)] != nil else { return false }
      state.calls.beginRegistering()
      return true
    }
    if begins { _ = register(watch, directory.descriptor, isPolled: true) }
  }
}
