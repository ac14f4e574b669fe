internal import SharedContainer

extension Wormhole.Coordinator.Access {
  /// Tells those who present it that something was moved: see
  /// ``Wormhole/Wormhole/Coordinator/Presenter/moved``.
  ///
  /// Call it in the body of an access that writes both paths, or folders that they lie in, once
  /// the file, or the folder, is where it is to be. It moves nothing. Those who present it, and
  /// run, present it there when this returns, and so are asked by whoever comes after this access.
  /// It waits for those that do not run for a second, and for two at most.
  ///
  /// - Parameters:
  ///   - old: where it was.
  ///   - new: where it is: of what is *replaced*, one of ``paths`` or one of ``originals``.
  /// - Throws: ``WormholeError/Code-swift.struct/refused`` if the access does not write there.
  public func moved(_ old: String, to new: String) throws(WormholeError) {
    try stay.moved(given(old), to: given(new))
  }

  /// As the one without `await`; no thread of the pool waits.
  public func moved(_ old: String, to new: String) async throws(WormholeError) {
    let (stay, old, new) = (stay, given(old), given(new))
    try await OffPool.run("tell of the move of", old) { () throws(WormholeError) in
      try stay.moved(old, to: new)
    }
  }

  /// What is made for a file that is replaced will be where that is.
  private func given(_ path: String) -> String {
    zip(paths, originals).first { $0.0 == path }?.1 ?? path
  }
}

extension AccessStay {
  fileprivate func moved(_ old: String, to new: String) throws(WormholeError) {
    let paths = try [old, new].map { (path) throws(WormholeError) in
      // A link is what was moved, and not what it leads to.
      try AccessPath.resolve(path)[0]
    }
    for path in paths where !held.writes(path) {
      throw WormholeError(
        .refused, "tell of the move of", old,
        because: "the access does not write '\(path.text)', or has ended",
        hint: "name both paths in one access, and call this in its body")
    }
    guard paths[0] != paths[1] else { return }
    let room = try arbiters.room(for: paths[0])
    let names = held.tokens.map(\.name)
    held.note(presenters.tellMove(from: paths[0], to: paths[1], in: room, inside: names))
  }
}
