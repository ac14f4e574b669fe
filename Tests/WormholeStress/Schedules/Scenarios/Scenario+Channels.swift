#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// Channels: several at once, a removal, a repair.
  extension Scenario {
    // MARK: Several channels

    /// Two processes add one to two channels, and a third one reads them.
    func changeSeveral(_ number: Int, _ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
      let first = container.channel("x", of: Int.self)
      let second = container.channel("y", of: Int.self)
      if number == 0 { try container.update(first, second) { ($0, $1) = (0, 0) } }
      _ = try (first.value, second.value)
      Turnstile.begin()
      if number == 2 {
        for _ in 0..<2 {
          // The channel that is committed last is read first.
          Note.second.write(try second.value ?? -1)
          Note.first.write(try first.value ?? -1)
        }
      } else {
        Note.attempted.write(number)
        do {
          try container.update(first, second) { one, other in
            one = (one ?? 0) + 1
            other = (other ?? 0) + 1
          }
          Note.done.write(number)
        } catch let error as WormholeError where error.code == .partlyDone {
          Note.partly.write(number)
        }
      }
      Turnstile.finish()
    }

    func checkSeveral(_ container: SharedContainer) throws {
      Note.second.write(try container.channel("y", of: Int.self).value ?? -1)
      Note.first.write(try container.channel("x", of: Int.self).value ?? -1)
    }

    func brokenSeveral(_ notes: [[Pair]]) -> String? {
      let (done, partly) = (count(.done, notes), count(.partly, notes))
      // A process that was killed in the call may have made both changes, one, or none.
      let unsure = count(.attempted, notes) - done - partly
      var (latest, pairs) = ((first: 0, second: 0), [(first: Int, second: Int)]())
      for (reader, notes) in [notes[2], notes[3]].enumerated() {
        let seconds = values(.second, in: notes)
        for (index, first) in values(.first, in: notes).enumerated() {
          let pair = (first: first, second: seconds[index])
          if pair.second > first { return "order: the second change without the first, \(pair)" }
          if pair.first < latest.first || pair.second < latest.second {
            return "back: \(pair) after \(latest), by reader \(reader)"
          }
          latest = pair
          pairs.append(pair)
        }
      }
      guard let end = pairs.last, !values(.first, in: notes[3]).isEmpty else {
        return "unreadable: the final values are missing"
      }
      let least = (first: done + partly, second: done)
      if end.first < least.first || end.second < least.second {
        return "lost: \(done) changes and \(partly) partly done, and the values are \(end)"
      }
      if end.first > least.first + unsure || end.second > least.second + unsure {
        return "double: \(done) changes and \(partly) partly done, and the values are \(end)"
      }
      return nil
    }

    // MARK: A removal

    /// A process removes a channel that another one changes, and a third one watches.
    func changeNames(_ number: Int, _ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
      let channel = container.channel("x", of: Int.self)
      if number == 0 { for value in 1...3 { try channel.put(value) } }
      _ = try channel.value
      switch number {
      case 0:
        Turnstile.begin()
        Note.attempted.write(0)
        Note.removed.write(try container.removeChannel("x") ? 1 : 0)
      case 1:
        Turnstile.begin()
        Note.attempted.write(7)
        let after = try channel.updateVersionIfNeeded { value in
          value = 7
          return .commit
        }
        Note.version.write(after.version)
        Note.done.write(7)
      default:
        let watching = try channel.watch { snapshot in
          Note.version.write(snapshot.metadata.version)
          Note.added.write(snapshot.value ?? -1)
        }
        Self.pause(.seconds(1))
        Turnstile.begin()
        Self.pause(.seconds(10))
        watching.stop()
      }
      Turnstile.finish()
    }

    func checkNames(_ container: SharedContainer) throws {
      let channel = container.channel("x", of: Int.self)
      let latest = try channel.latest
      Note.version.write(latest?.metadata.version ?? -1)
      Note.added.write(latest?.value ?? -1)
      Note.removed.write(container.storage.removedVersion() ?? -1)
      let after = try channel.updateVersionIfNeeded { value in
        value = 9
        return .commit
      }
      Note.done.write(after.version)
    }

    func brokenNames(_ notes: [[Pair]]) -> String? {
      guard let final = values(.added, in: notes[3]).first,
        let noted = values(.removed, in: notes[3]).first,
        let last = values(.done, in: notes[3]).first
      else { return "unreadable: the final value is missing" }
      let put = values(.done, in: notes[1]).isEmpty ? nil : values(.version, in: notes[1]).first
      let isRemoved = values(.removed, in: notes[0]) == [1]
      let seen = Array(zip(values(.version, in: notes[2]), values(.added, in: notes[2])))
      if isRemoved, final == 3 { return "kept: the value is there after the removal" }
      // The removal has noted the version of its empty value.
      if let put, final != 7, noted <= put {
        return "lost: version \(put) was put, and version \(noted) removed"
      }
      for (one, next) in zip(seen, seen.dropFirst()) where next.0 < one.0 {
        return "back: the watcher has seen version \(next.0) after \(one.0)"
      }
      // A remover that dies or fails may have noted the version of a value that never existed.
      let known = values(.removed, in: notes[0]).isEmpty ? [] : [noted]
      let all = seen.map(\.0) + (put.map { [$0] } ?? []) + known
      if let latest = all.max(), last <= latest {
        return "back: version \(latest) was known, and the next one is \(last)"
      }
      for (version, value) in seen where version == put && value != 7 {
        return "twice: version \(version) has the values 7 and \(value)"
      }
      let hasEnded = !Turnstile.wasKilled(2) && !values(.added, in: notes[2]).isEmpty
      if hasEnded, let latest = seen.last?.1, latest != final {
        return "unnoticed: the watcher has seen \(latest), and the value is \(final)"
      }
      return nil
    }

    // MARK: A repair

    /// A process adds to a damaged value; a second process repairs the value and adds to it.
    func changeDamaged(_ number: Int, _ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
      let sum = container.channel("sum", of: Int.self)
      if number == 0 {
        // The previous value of a synced one is retained.
        for value in 1...3 { try sum.put(value, durability: value == 3 ? .process : .power) }
        try Self.damage("\(path)/channels/sum")
        Note.first.write(try sum.value ?? -1)
      } else {
        _ = try sum.value
      }
      Turnstile.begin()
      if number == 1 { _ = try container.storage.repair() }
      Note.attempted.write(number)
      Note.added.write(try sum.update { $0 = ($0 ?? 0) + 1 } ?? -1)
      Turnstile.finish()
    }

    /// Changes a bit of the value, in a file that is moved over it.
    private static func damage(_ path: String) throws {
      let directory = try Descriptor.open(path: path, [.readOnly, .directory])
      let file = try directory.open("value.plist", [.readOnly])
      var bytes = [UInt8](repeating: 0, count: try file.status().size)
      _ = try bytes.withUnsafeMutableBytes { try file.readFully(into: $0) }
      bytes[9] ^= 4
      let bad = try directory.open("bad", [.writeOnly, .create], mode: 0o600)
      try bad.writeFully(bytes)
      try directory.rename("bad", to: directory, "value.plist")
    }

    func brokenRepair(_ notes: [[Pair]]) -> String? {
      guard let before = values(.first, in: notes[0]).first,
        let final = values(.added, in: notes[2]).first
      else { return "unreadable: the final value is missing" }
      let added = (notes[0] + notes[1]).filter { $0.note == .added }.map(\.value)
      if before < 1 { return "unreadable: no previous value, \(before)" }
      if Set(added).count < added.count { return "lost: both additions returned \(added)" }
      if final < before + added.count || final < added.max() ?? 0 {
        return "lost: \(added) after \(before), and the value is \(final)"
      }
      if final > before + count(.attempted, notes) {
        return "double: \(added) after \(before), and the value is \(final)"
      }
      return nil
    }

    // MARK: Notes

    func values(_ note: Note, in notes: [Pair]) -> [Int] {
      notes.filter { $0.note == note }.map(\.value)
    }

    func count(_ note: Note, _ notes: [[Pair]]) -> Int {
      notes.joined().count { $0.note == note }
    }
  }
#endif
