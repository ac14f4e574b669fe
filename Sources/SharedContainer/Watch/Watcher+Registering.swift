internal import Synchronization
internal import Syscalls

/// What inotify is asked for.
///
/// It is asked without the watcher's lock, since it asks the file system, which may not answer:
/// only whoever watches something there waits for it then. So what others do meanwhile must not
/// undo what a call is about to find:
///
/// - The same directory has the same number, also for somebody whose call has not returned. One
///   that nobody else needs any more is given back only once no call is under way.
/// - A directory's end may be told before its number is known here; it is remembered as long.
/// - A pause replaces what a directory is asked for. It does not begin while anybody registers, and
///   whoever registers while one of the same directory is under way asks again after it.
struct WatcherCalls {
  /// How many are under way, and how many of them register somebody.
  private(set) var count = 0
  private(set) var registering = 0
  fileprivate(set) var pausing: Set<CInt> = []
  /// Numbers that are to be given back, unless somebody has them by then.
  fileprivate var unneeded: Set<CInt> = []
  /// Numbers whose directories' end was told meanwhile.
  fileprivate var gone: Set<CInt> = []
  /// Whether inotify is asked again for those that are polled.
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
  /// Nobody needs a number any more.
  mutating func forget(_ number: CInt) {
    if calls.count > 0 {
      calls.unneeded.insert(number)
    } else {
      try? instance?.unwatch(number)
    }
  }

  /// A call has returned.
  mutating func endCall(registering: Bool = false) {
    calls.end(registering: registering)
    guard calls.count == 0 else { return }
    for number in calls.unneeded where watches[number] == nil {
      try? instance?.unwatch(number)
    }
    (calls.unneeded, calls.gone) = ([], [])
    restIfUnused()
  }

  /// Lets go of the threads and the instance once nobody listens.
  mutating func restIfUnused() {
    guard watches.isEmpty, polled.isEmpty, calls.count == 0 else { return }
    instance = nil
    crew.take()?.wakeUp.raise()
  }
}

extension Watcher {
  /// Asks inotify for a listener, for whom that was begun.
  ///
  /// - Parameter isPolled: whether it is told to look again and again until then; it looks once
  ///   more afterwards.
  /// - Returns: the reason why it has to be polled, or nil.
  func register(
    _ watch: Watch, _ directory: borrowing Descriptor, isPolled: Bool = false
  ) -> String? {
    var number: CInt?
    var failure: Errno?
    do throws(Errno) {
      number = try ask(watch, directory)
    } catch {
      failure = error
    }
    let isGone = state.withLock { state in
      defer { state.endCall(registering: true) }
      // It may have been stopped.
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
      state.watches[number, default: []].append(watch)
      return false
    }
    if isGone { watch.tell(.gone) }
    return failure.map { "inotify failed: \($0)" }
  }

  private func ask(_ watch: Watch, _ directory: borrowing Descriptor) throws(Errno) -> CInt {
    let (instance, pausing) = try state.withLock {
      state throws(Errno) -> (Inotify, Set<CInt>) in
      (try self.instance(&state), state.calls.pausing)
    }
    let number = try instance.watch(directory, watch.mask)
    guard pausing.contains(number) else { return number }
    // As long as that takes: it is the same file system that does not answer.
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

  /// Whether nothing but the end of the directory is told any more; not where others listen too.
  func pause(_ watch: Watch) -> Bool {
    guard let directory = watch.directory else { return false }
    let begun = state.withLock { state -> (Inotify, CInt)? in
      let number = watch.number.load(ordering: .relaxed)
      // Who registers just now may be about to listen to the same.
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
      // The end of the directory was told, and nobody is told of what has its number now.
      if let found, found != number { state.forget(found) }
      return found == number && state.watches[number] != nil
    }
  }

  func resume(_ watch: Watch) {
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
      // It was watched before, and now it cannot be.
      state.watches[number]?.removeAll { $0 === watch }
      if state.watches[number]?.isEmpty == true { state.watches[number] = nil }
      watch.number.store(-1, ordering: .relaxed)
      poll(watch, &state)
    }
  }

  // MARK: Those that are polled

  /// Asks inotify again for those that it did not serve; not here, where others wait.
  func upgrade(_ polled: [Watch], _ crew: WatcherCrew) {
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

  private func upgrade(_ watch: Watch, _ crew: WatcherCrew) {
    guard let directory = watch.directory else { return }
    let begins = state.withLock { state in
      guard state.crew === crew, state.polled[ObjectIdentifier(watch)] != nil else { return false }
      state.calls.beginRegistering()
      return true
    }
    if begins { _ = register(watch, directory.descriptor, isPolled: true) }
  }
}
