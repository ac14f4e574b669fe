internal import Syscalls

/// The directories of one open container that are watched, each of them once, whoever asks.
///
/// A directory goes by its name, so the one that it lies in is watched too: that tells of the
/// name's coming and going. The directory alone would not do. While anybody has a removed one open,
/// and this process may well have, the kernel tells nothing of its end; and one that was moved away
/// is still there. So the directories that are watched are a tree, and its root is the container.
///
/// The watcher's threads only note what they hear and tell it on. What takes a look at the file
/// system is done elsewhere, so that one that does not answer holds up nobody but those who watch
/// this container.
///
/// A directory that cannot be watched is looked at again and again, and nothing is kept open for
/// that.
final class WatchTree: Sendable {
  /// Who is told.
  final class Ear: Sendable {
    let mask: InotifyMask
    /// The one name that it is told of; nil for all.
    let name: String?
    let pauses: Bool
    let gate = CallGate()
    let ended: @Sendable (ContainerEnd) -> Void
    let handler: @Sendable (Watcher.Signal) -> Void

    init(
      _ mask: InotifyMask, name: String?, pauses: Bool,
      ended: @escaping @Sendable (ContainerEnd) -> Void,
      _ handler: @escaping @Sendable (Watcher.Signal) -> Void
    ) {
      self.mask = mask
      self.name = name
      self.pauses = pauses
      self.ended = ended
      self.handler = handler
    }

    func tell(_ signal: Watcher.Signal) { gate.call { handler(signal) } }
  }

  /// A directory: a name, and which one has it now.
  // What can change is touched only under the lock of the tree.
  final class Node: @unchecked Sendable {
    let name: String
    let parent: Node?
    fileprivate var children: [String: Node] = [:]
    /// Those who are told of all names, and those of one.
    fileprivate var ears: [Ear] = []
    fileprivate var earsByName: [String: [Ear]] = [:]
    fileprivate var watch: Watch?
    fileprivate var directory: FileIdentity?
    /// The same, open: for those who look for names in it, or pause.
    fileprivate var open: OpenDirectory?
    /// What is asked for.
    fileprivate var mask: InotifyMask = []
    /// What the watch was registered for.
    fileprivate var registered: InotifyMask?
    fileprivate var isOut = false
    /// Whether it may be another directory by now, which its ears have not been told yet.
    fileprivate var isUntold = false
    fileprivate var nextUpgrade = Instant.distantFuture

    fileprivate init(_ name: String, in parent: Node?) {
      self.name = name
      self.parent = parent
    }

    fileprivate var allEars: [Ear] {
      earsByName.isEmpty ? ears : ears + earsByName.values.flatMap { $0 }
    }

    fileprivate var isUsed: Bool { !ears.isEmpty || !earsByName.isEmpty || !children.isEmpty }

    fileprivate var keepsOpen: Bool {
      !children.isEmpty || ears.contains { $0.pauses }
    }

    /// Whether what is asked for is more than it was registered for.
    fileprivate var isDue: Bool {
      guard let registered else { return true }
      return !registered.isSuperset(of: mask) || directory != nil && keepsOpen && open == nil
    }
  }

  private struct State {
    /// What is to be looked at, and whether it is to be registered anew even if it seems the same.
    var pending: [ObjectIdentifier: (node: Node, isForced: Bool)] = [:]
    var end: ContainerEnd?
    /// Why something is polled; told once.
    var reason: String?
    var isReasonTold = false
  }

  private let container: Container
  /// Where the container is to be found, whatever the process's directory.
  private let place: String?
  private let root = Node("", in: nil)
  /// Also for what is in the nodes.
  private let state = Monitor(State())
  /// Held while directories are opened and registered: of two that do so at once, the later one is
  /// to stay.
  private let changing = Monitor(0)
  private let work = Monitor<Errand?>(nil)

  /// What tells of a directory's names.
  private static let names: InotifyMask = [.created, .movedTo, .deleted, .movedFrom]

  init(_ container: Container) {
    self.container = container
    place = container.place()
    root.mask = Self.names.union(.selfMoved)
    work.withLock { $0 = Errand { [weak self] in self?.lookAtPending() } }
  }

  deinit { root.watch?.stop() }

  // MARK: Those who listen

  /// Has an ear told of a directory; the nodes that lead there are made.
  func add(_ ear: Ear, at path: [String]) throws(Errno) -> Node {
    let (node, failure) = changing.withLock { _ -> (Node, Errno?) in
      let chain = join(ear, path)
      let failure = Errno.of { () throws(Errno) in
        // Who comes first looks whether the container is still what has its path.
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

  private func join(_ ear: Ear, _ path: [String]) -> [Node] {
    state.withLock { _ in
      var chain = [root]
      for name in path {
        let parent = chain[chain.count - 1]
        parent.mask.formUnion(Self.names)
        let node = parent.children[name] ?? Node(name, in: parent)
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

  /// Forgets an ear, and the nodes that nobody needs then; a call of it may be under way.
  func remove(_ ear: Ear, at node: Node) {
    let unused = state.withLock { state -> [Watch] in
      if let name = ear.name {
        node.earsByName[name]?.removeAll { $0 === ear }
        if node.earsByName[name]?.isEmpty == true { node.earsByName[name] = nil }
      } else {
        node.ears.removeAll { $0 === ear }
      }
      var unused: [Watch] = []
      var next: Node? = node
      while let last = next, !last.isUsed, !last.isOut {
        if let watch = last.watch.take() { unused.append(watch) }
        last.open = nil
        last.registered = nil
        state.pending[ObjectIdentifier(last)] = nil
        // The root stays, for whoever comes next.
        last.isOut = last.parent != nil
        last.parent?.children[last.name] = nil
        next = last.parent
      }
      return unused
    }
    for watch in unused { watch.stop() }
  }

  func isPolling(_ node: Node) -> Bool {
    state.withLock { _ in
      sequence(first: node, next: \.parent).contains { $0.watch?.isPolling ?? false }
    }
  }

  /// Not where others listen too.
  func pause(_ node: Node) -> Bool {
    state.withLock { _ in
      guard node.ears.count == 1, node.earsByName.isEmpty, node.children.isEmpty else {
        return false
      }
      guard node.watch?.pause() == true else { return false }
      // Whoever comes meanwhile registers it anew, to be told.
      node.registered = nil
      return true
    }
  }

  func resume(_ node: Node) { state.withLock { _ in node.watch?.resume() } }

  // MARK: What the watcher tells

  private func hear(_ signal: Watcher.Signal, _ node: Node) {
    switch signal {
    case .changed(let names): hear(names, node)
    case .lookAgain:
      state.withLock { state in
        // Where notices were lost, one that has the same number may be another directory: file
        // systems give the number of a removed one to the next.
        let isForced = node !== root && node.watch?.isPolling == false
        note(node, isForced: isForced, &state)
        // Of those that are not there this one would have told.
        for child in node.children.values { note(child, isForced: false, &state) }
      }
      ask()
      for ear in state.withLock({ _ in node.allEars }) {
        container.count { $0.rescans += 1 }
        ear.tell(.lookAgain)
      }
    case .replaced, .gone:
      state.withLock { note(node, isForced: true, &$0) }
      ask()
    }
  }

  private func hear(_ names: [String], _ node: Node) {
    let (ears, signal, named, isWorkDue) = state.withLock {
      state -> ([Ear], Watcher.Signal, [(Ear, String)], Bool) in
      var named: [(Ear, String)] = []
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
      // Whatever happens to the container itself is rare, and it may be the end of it.
      if node === root { note(root, isForced: false, &state) }
      // Whoever goes by the order of names has to look first: some of a new directory were there
      // before it was watched.
      let signal = node.isUntold ? Watcher.Signal.lookAgain : .changed(names)
      return (node.ears, signal, named, !state.pending.isEmpty)
    }
    for ear in ears { ear.tell(signal) }
    for (ear, name) in named { ear.tell(.changed([name])) }
    if isWorkDue { ask() }
  }

  private func note(_ node: Node, isForced: Bool, _ state: inout State) {
    guard !node.isOut, state.end == nil else { return }
    let known = state.pending[ObjectIdentifier(node)]?.isForced ?? false
    state.pending[ObjectIdentifier(node)] = (node, isForced || known)
  }

  private func ask() { work.withLock { $0 }?.ask() }

  // MARK: Looking

  /// Looks at what has been noted, and tells of what has become of it.
  private func lookAtPending() {
    while let (node, isForced) = state.withLock({ $0.pending.popFirst()?.value }) {
      var told: [(Node, [Ear], Watcher.Signal)] = []
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

  /// The last that anybody hears.
  private func tellAll(of end: ContainerEnd) {
    let (ears, watches) = state.withLock { state -> ([Ear], [Watch]) in
      state.pending = [:]
      var (ears, watches): ([Ear], [Watch]) = ([], [])
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
    _ node: Node, _ isForced: Bool, _ told: inout [(Node, [Ear], Watcher.Signal)]
  ) {
    let (isOut, isUpgradeDue) = state.withLock { _ in
      (node.isOut, node.watch?.isPolling == true && Instant.now >= node.nextUpgrade)
    }
    if isOut { return }
    if !isForced, isSame(node) {
      // What fails is tried again in a while.
      if isUpgradeDue { _ = Errno.of { () throws(Errno) in _ = try renew(node) } }
      return
    }
    renewAll(node, &told)
  }

  /// Whether the directory that is watched is the one of that name, or neither is there.
  private func isSame(_ node: Node) -> Bool {
    guard let parent = node.parent else { return state.withLock { _ in root.watch != nil } }
    let (open, known) = state.withLock { _ in (parent.open, node.directory) }
    let status = try? open?.descriptor.status(of: node.name)
    return known == status.map(FileIdentity.init)
  }

  /// Looks anew which directories have their names, from one of them on.
  private func renewAll(_ node: Node, _ told: inout [(Node, [Ear], Watcher.Signal)]) {
    var isThere = false
    state.withLock { _ in node.isUntold = true }
    do throws(Errno) {
      isThere = try renew(node)
    } catch {
      // It is looked at again and again until it can be watched.
      retry(node, error)
    }
    let (ears, children) = state.withLock { _ in (node.allEars, Array(node.children.values)) }
    for child in children { renewAll(child, &told) }
    told.append((node, ears, isThere ? .replaced : .gone))
  }

  /// Watches the directory that has the name now; false if none has.
  private func renew(_ node: Node) throws(Errno) -> Bool {
    let (mask, keepsOpen) = state.withLock { _ in (node.mask, node.keepsOpen) }
    let open = try directory(of: node)
    var watch: Watch?
    var identity: FileIdentity?
    if let open {
      identity = FileIdentity(try open.descriptor.status())
      watch = try Watcher.shared.watch(
        open.descriptor, mask, keeping: keepsOpen ? open : nil,
        polled: { reason in state.withLock { $0.reason = $0.reason ?? reason } }
      ) { [weak self, node] signal in self?.hear(signal, node) }
    }
    let old = state.withLock { _ -> Watch? in
      guard !node.isOut else { return watch }
      defer {
        node.watch = watch
        node.directory = identity
        node.open = keepsOpen ? open : nil
        node.registered = mask
        // Those that are kept open are asked for again by the watcher.
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
      "looking at a directory every \(Watcher.pollInterval) instead of being told: \(reason)")
  }

  private func retry(_ node: Node, _ error: Errno) {
    let watch = Watcher.shared.poll { [weak self, node] signal in self?.hear(signal, node) }
    let old = state.withLock { state -> Watch? in
      state.reason = state.reason ?? "\(error)"
      guard !node.isOut else { return watch }
      defer {
        node.watch = watch
        // So that it differs from whatever has the name.
        node.directory = nil
        node.open = nil
        node.nextUpgrade = .now
      }
      return node.watch
    }
    old?.stop()
  }

  private func directory(of node: Node) throws(Errno) -> OpenDirectory? {
    guard let parent = node.parent else {
      return OpenDirectory(try container.root.duplicate())
    }
    if parent === root, let folder = Container.Folder(rawValue: node.name) {
      return try container.named(folder)
    }
    return try state.withLock { _ in parent.open }?.directory(
      node.name, container.options.sharing)
  }
}
