import WormholeContainerStorage
import WormholeSyscalls

/// Harm to the directory, and to the file system below it.
extension Run {
  func harmDirectory() throws {
    if let until = fullUntil, Instant.now >= until { empty() }
    if plan.isSmall, fullUntil == nil, dice.oneIn(40) { fill() }
    if plan.focus != .mail, dice.oneIn(20) { try replaceStray() }
    if plan.focus != .channels, dice.oneIn(100) { try takeInbox() }
    // Rarely, because a process that has the directory open must end.
    if plan.seed % 4 == 2, dice.oneIn(harm.stagings == 0 ? 30 : 2000) { try takeStaging() }
  }

  /// Takes all free space of the disk.
  private func fill() {
    guard
      let file = try? Descriptor.open(
        path: plan.small + "/filler", [.writeOnly, .create], mode: 0o600)
    else { return }
    let zeros = [UInt8](repeating: 0, count: 1 << 18)
    // The remaining space is less than the size of a value.
    for size in [zeros.count, 4096] {
      while (try? file.writeFully(zeros.span.bytes.extracting(first: size))) != nil {}
    }
    harm.fills += 1
    fullUntil = .now + .milliseconds(dice.number(5..<100))
  }

  func empty() {
    fullUntil = nil
    guard plan.isSmall else { return }
    try? Descriptor.open(path: plan.small, [.readOnly, .directory]).unlink("filler")
  }

  /// Changes so many names in the inbox of a suspended worker that the kernel cannot report all
  /// changes.
  func flood(_ worker: Int) {
    let path = plan.container + "/members/\(plan.name(worker))/inbox"
    guard let inbox = try? Descriptor.open(path: path, [.readOnly, .directory]),
      (try? inbox.open("noise.a", [.writeOnly, .create], mode: 0o600)) != nil
    else { return }
    harm.floods += 1
    for _ in 0...(mostNotices / 2) {
      try? inbox.rename("noise.a", to: inbox, "noise.b")
      try? inbox.rename("noise.b", to: inbox, "noise.a")
    }
    try? inbox.unlink("noise.a")
  }

  /// Removes the inbox of one worker, with the messages that wait there, or moves the inbox away.
  private func takeInbox() throws {
    let begin = Instant.now
    guard try take("members/\(plan.name(plan.bereft))/inbox") else { return }
    harm.inboxes += 1
    losses.append(begin.nanoseconds...Instant.now.nanoseconds)
  }

  /// Removes the directory in which files are made, or moves the directory away.
  ///
  /// A process that has the removed directory open can no longer put values; a process that starts
  /// later makes the directory again.
  private func takeStaging() throws {
    if try take("staging") { harm.stagings += 1 }
  }

  /// Removes a directory of the container, moves it away, or puts an empty directory in its place.
  private func take(_ name: String) throws -> Bool {
    let path = plan.container + "/" + name
    guard (try? Descriptor.status(ofPath: path)) != nil else { return false }
    let way = dice.number(0..<3)
    let aside = plan.container + "/aside." + String(name.split(separator: "/").last ?? "-")
    if way > 0 {
      _ = try Child.spawn("mv", ["-T", "--", path, aside]).wait()
      if way > 1 { try? Descriptor.makeDirectory(path: path, mode: 0o700) }
    }
    // `rm` may fail: the directory is not empty for long if other processes make files there.
    _ = try Child.spawn("rm", ["-rf", "--", way > 0 ? aside : path], error: 1).wait()
    return true
  }

  private var mostNotices: Int {
    var bytes = [UInt8](repeating: 0, count: 20)
    guard
      let file = try? Descriptor.open(
        path: "/proc/sys/fs/inotify/max_queued_events", [.readOnly]),
      let count = try? bytes.withUnsafeMutableBytes({ try file.readFully(into: $0) })
    else { return 16_384 }
    let digits = String(decoding: bytes[..<count].prefix { $0 != 10 }, as: UTF8.self)
    // A very high limit is not worth the time.
    return min(Int(digits) ?? 16_384, 32_768)
  }

  /// Moves a channel's directory away and removes it, or swaps it for an earlier directory.
  private func replaceStray() throws {
    let (name, aside) = (Plan.stray, Plan.stray + ".aside")
    let path = plan.container + "/channels"
    guard let channels = try? Descriptor.open(path: path, [.readOnly, .directory]) else { return }
    let isExchanged =
      dice.oneIn(2) && (try? channels.rename(aside, to: channels, name, .exchanging)) != nil
    let isMoved = !isExchanged && (try? channels.rename(name, to: channels, aside)) != nil
    if isExchanged || isMoved { harm.removals += 1 }
    // A process may be making a file in the directory at that very moment.
    if dice.oneIn(2) { try StressFolder.remove("\(path)/\(aside)") }
  }
}
