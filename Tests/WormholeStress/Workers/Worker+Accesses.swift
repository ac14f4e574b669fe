import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The worker's use of files outside of the container.
extension Worker {
  private typealias Use = SharedFiles.Use

  /// Reads some files, or adds to them, during an access.
  func useFiles() {
    let kind = dice.oneIn(4) ? SharedFiles.Kind.loose : dice.oneIn(2) ? .fenced : .patient
    var files = SharedFiles.files.filter { $0.hasPrefix(kind.rawValue + "/") }
    files.shuffle(using: &dice)
    // Now and then two files at once, or a nested access.
    let (isNested, isBoth) = (dice.oneIn(5), dice.oneIn(6))
    let number = isBoth ? 2 : 1
    var outer = files.prefix(number).map { Use(way(kind), $0) }
    if kind != .fenced, !isNested, dice.oneIn(10) {
      outer = [Use(dice.oneIn(2) ? .read : .write, kind.rawValue)]
    }
    let inner = isNested ? files.dropFirst(number).prefix(1).map { Use(way(kind), $0) } : []
    useFiles(outer, takesOver: kind != .patient && dice.oneIn(2)) {
      guard !inner.isEmpty else { return }
      // The nested access may be refused, and then has no effect.
      useFiles(inner, takesOver: kind != .patient && dice.oneIn(2)) {}
    }
  }

  private func way(_ kind: SharedFiles.Kind) -> Use.Way {
    if dice.oneIn(3) { return .read }
    return kind == .fenced || dice.oneIn(2) ? .replace : .write
  }

  private func useFiles(_ uses: [Use], takesOver: Bool, _ inside: () -> Void) {
    let token = token()
    let linger = dice.oneIn(6) ? Duration.milliseconds(dice.number(1..<8)) : nil
    perform(.access(token: token, uses: uses, takesOver: takesOver)) {
      do {
        try coordinator.access(
          uses.map { files.intent($0) }, within: Self.patience,
          takeOverAfter: takesOver ? .milliseconds(50) : nil
        ) { access in
          journal.note(.inside(token: token))
          var (before, after): ([SharedFiles.Content], [SharedFiles.Content]) = ([], [])
          // The entry is written even if a call in the body fails: from now on other accesses may
          // be admitted.
          defer {
            let isWhole = !after.isEmpty
            journal.note(
              .outside(token: token, before: isWhole ? before : [], after: after))
          }
          before = try uses.map { try read($0) }
          inside()
          if let linger { pause(linger) }
          var left: [SharedFiles.Content] = []
          for (place, use) in uses.enumerated() {
            if use.way == .read {
              left.append(try read(use))
            } else {
              let new = SharedFiles.Content(count: before[place].count + 1, token: token)
              try files.write(new, use, at: access.paths[place])
              left.append(new)
            }
          }
          after = left
        }
        return .done
      } catch let error as WormholeError {
        // The code of the error tells the effect of the access.
        return .refused("\(error.code.rawValue): \(error)")
      }
    }
  }

  private func read(_ use: Use) throws -> SharedFiles.Content {
    do {
      return try files.read(files.path(use.file))
    } catch let error as SharedFiles.Torn {
      journal.note(.broken("\(error)"))
      throw error
    }
  }

  /// No process is suspended for long, so no wait takes as long as eight seconds.
  private static let patience = Duration.seconds(8)

  private func pause(_ duration: Duration) {
    let _: Void? = Monitor(()).wait(until: .now + duration) { _ in nil }
  }
}
