internal import WormholeSyscalls

/// The watch tree of one open container, as long as a watch retains the tree.
private final class WatchTreeReference: Service {
  private struct Reference {
    weak var tree: WatchTree?
  }

  private let reference = Monitor(Reference())

  func tree(_ make: () -> WatchTree) -> WatchTree {
    reference.withLock { reference in
      if let tree = reference.tree { return tree }
      let tree = make()
      reference.tree = tree
      return tree
    }
  }

  func forget(_ tree: WatchTree) {
    reference.withLock { if $0.tree === tree { $0.tree = nil } }
  }
}

extension Container {
  private var watching: WatchTreeReference { services.get(WatchTreeReference.init) }

  /// The watched directories of the container; retained by their watches.
  func watchTree() -> WatchTree { watching.tree { WatchTree(self) } }

  /// Makes later watches use a new tree.
  func forget(_ tree: WatchTree) { watching.forget(tree) }
}
