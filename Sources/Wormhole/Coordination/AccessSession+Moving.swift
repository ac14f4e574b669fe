internal import WormholeContainerStorage

extension Coordinator.Access {
  /// Notifies the presenters of a file, or of a folder around it, that the file was moved: see
  /// ``Coordinator/Presenter/didMove``.
  ///
  /// Call this function in the body of an access that writes both paths, or folders above them,
  /// after the file or folder has reached its new path. The function itself moves nothing. When it
  /// returns, the running presenters of the file present it at the new path, and later accesses ask
  /// them there. The function waits one second for a presenter whose process does not run, and two
  /// seconds at most.
  ///
  /// - Parameters:
  ///   - old: the path before the move.
  ///   - new: the path after the move; for a *replaced* file, an element of ``paths`` or
  ///     ``originals``.
  /// - Throws: ``WormholeError/Code-swift.struct/refused`` if the access does not write both paths.
  public func moved(_ old: String, to new: String) throws(WormholeError) {
    try stay.moved(given(old), to: given(new))
  }

  /// The async overload; no thread of the pool waits.
  public func moved(_ old: String, to new: String) async throws(WormholeError) {
    let (stay, old, new) = (stay, given(old), given(new))
    try await OffPool.run("report the move of", old) { () throws(WormholeError) in
      try stay.moved(old, to: new)
    }
  }

  /// Returns the final path: the temporary path of a replaced file stands for the file's own path.
  private func given(_ path: String) -> String {
    zip(paths, originals).first { $0.0 == path }?.1 ?? path
  }
}

extension AccessSession {
  fileprivate func moved(_ old: String, to new: String) throws(WormholeError) {
    let paths = try [old, new].map { (path) throws(WormholeError) in
      // If the path is a link, the link was moved and not its target.
      try AccessPath.resolve(path)[0]
    }
    for path in paths where !held.writes(path) {
      throw WormholeError(
        .refused, "report the move of", old,
        because: "the access does not write '\(path.text)', or has ended",
        hint: "name both paths in one write access, and report the move in its body")
    }
    guard paths[0] != paths[1] else { return }
    let room = try arbiters.room(for: paths[0])
    let names = held.tokens.map(\.name)
    held.note(presenters.tellMove(from: paths[0], to: paths[1], in: room, inside: names))
  }
}
