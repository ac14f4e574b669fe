import WormholeContainerStorage

/// The calls of a commit that decide whether the change takes effect, in the order of `Commit`.
extension LockWorld {
  private enum Stage {
    static let stage: Int8 = 0
    static let publish: Int8 = 1
  }

  mutating func commit(_ index: Int) {
    let inode = Int(state.processes[index].staging)
    switch state.processes[index].step {
    case Stage.stage: stage(index, inode)
    case Stage.publish: publish(index, inode)
    default:
      // The exchange has given the old value the name of the new one.
      state.inodes[inode]?.next = nil
      tell(index, .committed)
    }
  }

  private mutating func stage(_ index: Int, _ inode: Int) {
    guard let there = state.inodes[inode] else { return tell(index, .superseded) }
    // Left by a dead holder of this generation.
    guard there.next == nil else { return state.inodes[inode] = Staging() }
    let content = (state.processes[index].old?.content ?? 0) + 1
    state.inodes[inode]?.next = File(content: content, writer: Int8(index))
    state.processes[index].step = Stage.publish
  }

  private mutating func publish(_ index: Int, _ inode: Int) {
    guard let next = state.inodes[inode]?.next else { return tell(index, .superseded) }
    guard let old = state.processes[index].old else { return moveIn(index, inode, next) }
    if state.value != old { state.isOverwritten = true }
    state.inodes[inode]?.next = state.value
    state.value = next
    state.processes[index].step = Stage.publish + 1
  }

  /// Commits where no value was.
  private mutating func moveIn(_ index: Int, _ inode: Int, _ next: File) {
    state.inodes[inode]?.next = nil
    guard state.value == nil else { return tell(index, .superseded) }
    state.value = next
    tell(index, .committed)
  }
}
