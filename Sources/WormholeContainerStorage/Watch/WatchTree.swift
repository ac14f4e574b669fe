internal import WormholeSyscalls

/// The watched directories of one open container, each watched once, for all listeners.
///
/// A directory is identified by its name, so its parent directory is watched too, which reports
/// when the name appears or disappears. Watching the directory alone would not be enough. As long
/// as any process has a removed directory open, and this process may well have, the kernel reports
/// no removal; and a moved directory still exists. The watched directories therefore form a tree,
/// whose root is the container.
///
/// The watcher's threads only record notices and pass them on. All access to the file system
/// happens elsewhere: a hanging file system delays only this container's listeners.
///
/// A directory that cannot be watched is polled, and is not kept open for polling.
final class WatchTree: Sendable {
  /// A listener.
  final class WatchObserver: Sendable {
    let mask: InotifyMask
    /// The only name that is reported to the listener; nil for all names.
    let name: String?
    let pauses: Bool
    let gate = CallGate()
    let ended: @Sendable (ContainerEnd) -> Void
    let handler: @Sendable (WatchSignal) -> Void

    init(
      _ mask: InotifyMask, name: String?, pauses: Bool,
      ended: @escaping @Sendable (ContainerEnd) -> Void,
      _ handler: @escaping @Sendable (WatchSignal) -> Void
    ) {
      self.mask = mask
      self.name = name
      self.pauses = pauses
      self.ended = ended
      self.handler = handler
    }

    func tell(_ signal: WatchSignal) { gate.call { handler(signal) } }
  }

  /// A directory: a name, and the directory that has the name now.
  // The mutable properties are used only under the lock of the tree. So the exclusivity checks at
  // run time would find nothing.
  final class WatchedDirectory: @unchecked Sendable {
    let name: String
    let parent: WatchedDirectory?
    @exclusivity(unchecked) fileprivate var children: [String: WatchedDirectory] = [:]
    /// Listeners for all names, and listeners for a single name.
    @exclusivity(unchecked) fileprivate var ears: [WatchObserver] = []
    @exclusivity(unchecked) fileprivate var earsByName: [String: [WatchObserver]] = [:]
    fileprivate var watch: DirectoryWatch?
    fileprivate var directory: FileIdentity?
    /// The open directory, for nodes with children or with a listener that may pause.
    fileprivate var open: OpenDirectory?
    /// The requested events.
    fileprivate var mask: InotifyMask = []
    /// The events for which the watch was registered.
    fileprivate var registered: InotifyMask?
    fileprivate var isOut = false
    /// Whether the directory may have been replaced since the last notice to its listeners.
    @exclusivity(unchecked) fileprivate var isUntold = false
    fileprivate var nextUpgrade = Instant.distantFuture

    fileprivate init(_ name: String, in parent: WatchedDirectory?) {
      self.name = name
      self.parent = parent
    }

    fileprivate var allEars: [WatchObserver] {
      earsByName.isEmpty ? ears : ears + earsByName.values.flatMap { $0 }
    }

    fileprivate var isUsed: Bool { !ears.isEmpty || !earsByName.isEmpty || !children.isEmpty }

    fileprivate var keepsOpen: Bool {
      !children.isEmpty || ears.contains { $0.pauses }
    }

    /// Whether more is requested than was registered.
    fileprivate var isDue: Bool {
      guard let registered else { return true }
      return !registered.isSuperset(of: mask) || directory != nil && keepsOpen && open == nil
    }
  }

  private struct State {
    /// The nodes to check, and whether each is registered again even if it seems unchanged.
    var pending: [ObjectIdentifier: (node: WatchedDirectory, isForced: Bool)] = [:]
    /// The recorded nodes, the next one last; those without an entry in `pending` count no more.
    ///
    /// The order of a dictionary's keys depends on addresses: a run could not be repeated.
    var order: [WatchedDirectory] = []

    mutating func takePending() -> (node: WatchedDirectory, isForced: Bool)? {
      while let node = order.popLast() {
        if let next = pending.removeValue(forKey: ObjectIdentifier(node)) { return next }
      }
      return nil
    }
    var end: ContainerEnd?
    /// The reason for polling; reported once.
    var reason: String?
    var isReasonTold = false
  }

  private let container: Container
  /// The absolute path of the container, whatever the process's working directory.
  private let place: String?
  private let root = WatchedDirectory("", in: nil)
  /// Also protects the nodes.
  private let state = Monitor(State())
  /// Held while directories are opened and registered: if two threads do so at once, the later
  /// result must stay.
  private let changing = Monitor(0)
  private let worker = Worker()

  /// The events that report a directory's names.
  private static let names: InotifyMask = [.created, .movedTo, .deleted, .movedFrom]

  init(_ container: Container) {
    self.container = container
    place = container.presentPath()
    root.mask = Self.names.union(.selfMoved)
    worker.begin { [weak self] in self?.lookAtPending() }
  }

  deinit { root.watch?.stop() }

  // MARK: Listeners

  /// Adds a listener to a directory; the missing nodes on the path are made.
  func add(_ ear: WatchObserver, at path: [String]) throws(Errno) -> WatchedDirectory {
    let (node, failure) = changing.withLock { _ -> (WatchedDirectory, Errno?) in
      let chain = join(ear, path)
      let failure = Errno.of { () throws(Errno) in
        // The first listener checks whether the container still has its path.
        let (hasEnded, isFirst) = state.withLock { ($0.end != nil, root.registered == nil) }
        if hasEnded || isFirst && endNow() != nil { throw .noSuchFile }
        for node in chain where state.withLock({ _ in node.isDue }) { _ = try renew(node) }
      }
      return (chain[chain.count - 1], failure)
    }
    tellReason()
    guard let failure else { return node }
    remove(ear, at: node)
    throw failure
  }

  private func join(_ ear: WatchObserver, _ path: [String]) -> [WatchedDirectory] {
    state.withLock { _ in
      var chain = [root]
      for name in path {
        let parent = chain[chain.count - 1]
        parent.mask.formUnion(Self.names)
        let node = parent.children[name] ?? WatchedDirectory(name, in: parent)
        parent.children[name] = node
        chain.append(node)
      }
      let node = chain[chain.count - 1]
      node.mask.formUnion(ear.mask)
      if let name = ear.name {
        node.earsByName[name, default: []].append(ear)
      } else {
        node.ears.append(ear)
      }
      return chain
    }
  }

  /// Removes a listener and the nodes that become unused; a call of the listener may be in
  /// progress.
  func remove(_ ear: WatchObserver, at node: WatchedDirectory) {
    let unused = state.withLock { state -> [DirectoryWatch] in
      if let name = ear.name {
        node.earsByName[name]?.removeAll { $0 === ear }
        if node.earsByName[name]?.isEmpty == true { node.earsByName[name] = nil }
      } else {
        node.ears.removeAll { $0 === ear }
      }
      var unused: [DirectoryWatch] = []
      var next: WatchedDirectory? = node
      while let last = next, !last.isUsed, !last.isOut {
        if let watch = last.watch.take() { unused.append(watch) }
        last.open = nil
        last.registered = nil
        state.pending[ObjectIdentifier(last)] = nil
        // The root stays, for later listeners.
        last.isOut = last.parent != nil
        last.parent?.children[last.name] = nil
        next = last.parent
      }
      return unused
    }
    for watch in unused { watch.stop() }
  }

  func isPolling(_ node: WatchedDirectory) -> Bool {
    state.withLock { _ in
      sequence(first: node, next: \.parent).contains { $0.watch?.isPolling ?? false }
    }
  }

  /// Fails if the directory has further listeners.
  func pause(_ node: WatchedDirectory) -> Bool {
    state.withLock { _ in
      guard node.ears.count == 1, node.earsByName.isEmpty, node.children.isEmpty else {
        return false
      }
      guard node.watch?.pause() == true else { return false }
      // A listener that is added during the pause registers the directory again.
      node.registered = nil
      return true
    }
  }

  func resume(_ node: WatchedDirectory) { state.withLock { _ in node.watch?.resume() } }

  // MARK: Notices of the watcher

  private func hear(_ signal: WatchSignal, _ node: WatchedDirectory) {
    switch signal {
    case .changed(let names): hear(names, node)
    case .lookAgain:
      state.withLock { state in
        // If notices were lost, a directory with the same inode number may be a different one: file
        // systems reuse the number of a removed directory.
        let isForced = node !== root && node.watch?.isPolling == false
        note(node, isForced: isForced, &state)
        // For missing children, this directory would have reported a new name.
        for child in node.children.values { note(child, isForced: false, &state) }
      }
      worker.trigger()
      for ear in state.withLock({ _ in node.allEars }) {
        container.count { $0.rescans += 1 }
        ear.tell(.lookAgain)
      }
    case .replaced, .gone:
      state.withLock { note(node, isForced: true, &$0) }
      worker.trigger()
    }
  }

  private func hear(_ names: [String], _ node: WatchedDirectory) {
    let (ears, signal, named, isWorkDue) = state.withLock {
      state -> ([WatchObserver], WatchSignal, [(WatchObserver, String)], Bool) in
      var named: [(WatchObserver, String)] = []
      if !node.earsByName.isEmpty {
        for name in Set(names) {
          for ear in node.earsByName[name] ?? [] { named.append((ear, name)) }
        }
      }
      if !node.children.isEmpty {
        for name in names {
          if let child = node.children[name] { note(child, isForced: true, &state) }
        }
      }
      // Changes of the container itself are rare, and may be the end of the container.
      if node === root { note(root, isForced: false, &state) }
      // A listener that relies on the order of names has to list first: a new directory had names
      // before it was watched. It is told so once more in a moment, and nothing was lost.
      let signal = node.isUntold ? WatchSignal.replaced : .changed(names)
      return (node.ears, signal, named, !state.pending.isEmpty)
    }
    for ear in ears { ear.tell(signal) }
    for (ear, name) in named { ear.tell(.changed([name])) }
    if isWorkDue { worker.trigger() }
  }

  private func note(_ node: WatchedDirectory, isForced: Bool, _ state: inout State) {
    guard !node.isOut, state.end == nil else { return }
    let known = state.pending.updateValue((node, isForced), forKey: ObjectIdentifier(node))
    if known == nil { state.order.append(node) }
    if known?.isForced == true { state.pending[ObjectIdentifier(node)]?.isForced = true }
  }

  // MARK: Checking

  /// Checks the recorded nodes, and notifies the listeners of changes.
  private func lookAtPending() {
    while let (node, isForced) = state.withLock({ $0.takePending() }) {
      var told: [(WatchedDirectory, [WatchObserver], WatchSignal)] = []
      var end: ContainerEnd?
      changing.withLock { _ in
        if node === root { end = endNow() }
        if end == nil { refresh(node, isForced, &told) }
      }
      tellReason()
      for (node, ears, signal) in told {
        for ear in ears { ear.tell(signal) }
        state.withLock { _ in node.isUntold = false }
      }
      if let end { tellAll(of: end) }
    }
  }

  private func endNow() -> ContainerEnd? {
    guard state.withLock({ $0.end == nil }), let end = container.end(at: place) else { return nil }
    state.withLock { $0.end = end }
    container.forget(self)
    return end
  }

  /// Sends the last notice to all listeners.
  private func tellAll(of end: ContainerEnd) {
    let (ears, watches) = state.withLock { state -> ([WatchObserver], [DirectoryWatch]) in
      (state.pending, state.order) = ([:], [])
      var (ears, watches): ([WatchObserver], [DirectoryWatch]) = ([], [])
      var nodes = [root]
      while let node = nodes.popLast() {
        ears += node.allEars
        if let watch = node.watch.take() { watches.append(watch) }
        nodes += node.children.values
      }
      return (ears, watches)
    }
    for watch in watches { watch.stop() }
    for ear in ears {
      ear.gate.call { ear.ended(end) }
      ear.gate.close()
    }
  }

  private func refresh(
    _ node: WatchedDirectory, _ isForced: Bool,
    _ told: inout [(WatchedDirectory, [WatchObserver], WatchSignal)]
  ) {
    let (isOut, isUpgradeDue) = state.withLock { _ in
      (node.isOut, node.watch?.isPolling == true && Instant.now >= node.nextUpgrade)
    }
    if isOut { return }
    if !isForced, isSame(node) {
      // A failed registration is tried again later.
      if isUpgradeDue { _ = Errno.of { () throws(Errno) in _ = try renew(node) } }
      return
    }
    renewAll(node, &told)
  }

  /// Whether the watched directory still has the name, or both are missing.
  private func isSame(_ node: WatchedDirectory) -> Bool {
    guard let parent = node.parent else { return state.withLock { _ in root.watch != nil } }
    let (open, known) = state.withLock { _ in (parent.open, node.directory) }
    let status = try? open?.descriptor.status(of: node.name)
    return known == status.map(FileIdentity.init)
  }

  /// Opens the directories again by their names, from one node downward.
  private func renewAll(
    _ node: WatchedDirectory, _ told: inout [(WatchedDirectory, [WatchObserver], WatchSignal)]
  ) {
    var isThere = false
    state.withLock { _ in node.isUntold = true }
    do throws(Errno) {
      isThere = try renew(node)
    } catch {
      // The directory is polled until it can be watched.
      retry(node, error)
    }
    let (ears, children) = state.withLock { _ in (node.allEars, Array(node.children.values)) }
    for child in children { renewAll(child, &told) }
    told.append((node, ears, isThere ? .replaced : .gone))
  }

  /// Watches the directory that has the name now; false if there is none.
  private func renew(_ node: WatchedDirectory) throws(Errno) -> Bool {
    let (mask, keepsOpen) = state.withLock { _ in (node.mask, node.keepsOpen) }
    let open = try directory(of: node)
    var watch: DirectoryWatch?
    var identity: FileIdentity?
    if let open {
      identity = FileIdentity(try open.descriptor.status())
      watch = try Watcher.shared.watch(
        open.descriptor, mask, keeping: keepsOpen ? open : nil,
        polled: { reason in state.withLock { $0.reason = $0.reason ?? reason } }
      ) { [weak self, node] signal in self?.hear(signal, node) }
    }
    let old = state.withLock { _ -> DirectoryWatch? in
      guard !node.isOut else { return watch }
      defer {
        node.watch = watch
        node.directory = identity
        node.open = keepsOpen ? open : nil
        node.registered = mask
        // The watcher itself retries directories that stay open.
        let isTriedAgain = watch?.isPolling == true && watch?.canBeTold == true && !keepsOpen
        node.nextUpgrade = isTriedAgain ? .now + Watcher.upgradeInterval : .distantFuture
      }
      return node.watch
    }
    old?.stop()
    return open != nil
  }

  private func tellReason() {
    let reason = state.withLock { state -> String? in
      guard !state.isReasonTold, let reason = state.reason else { return nil }
      state.isReasonTold = true
      return reason
    }
    guard let reason else { return }
    container.log(
      .warning,
      "polling a directory every \(Watcher.pollInterval) instead of waiting for notices: \(reason)")
  }

  private func retry(_ node: WatchedDirectory, _ error: Errno) {
    let watch = Watcher.shared.poll { [weak self, node] signal in self?.hear(signal, node) }
    let old = state.withLock { state -> DirectoryWatch? in
      state.reason = state.reason ?? "\(error)"
      guard !node.isOut else { return watch }
      defer {
        node.watch = watch
        // Nil differs from every directory that has the name.
        node.directory = nil
        node.open = nil
        node.nextUpgrade = .now
      }
      return node.watch
    }
    old?.stop()
  }

  private func directory(of node: WatchedDirectory) throws(Errno) -> OpenDirectory? {
    guard let parent = node.parent else {
      return OpenDirectory(try container.root.descriptor.duplicate())
    }
    if parent === root, let folder = Container.Folder(rawValue: node.name) {
      return try container.named(folder)
    }
    return try state.withLock { _ in parent.open }?.directory(
      node.name, container.options.sharing)
  }
}
