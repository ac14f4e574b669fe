import SharedContainer
import Syscalls

/// What befalls the directory, and the file system under it.
extension Run {
  func harmDirectory() throws {
    if let until = fullUntil, Instant.now >= until { empty() }
    if plan.isSmall, fullUntil == nil, dice.oneIn(40) { fill() }
    if plan.focus != .mail, dice.oneIn(20) { try replaceStray() }
  }

  /// Takes all the room there is.
  private func fill() {
    guard
      let file = try? Descriptor.open(
        path: plan.small + "/filler", [.writeOnly, .create], mode: 0o600)
    else { return }
    let zeros = [UInt8](repeating: 0, count: 1 << 18)
    // What is left in the end is less than a value takes.
    for size in [zeros.count, 4096] {
      while (try? zeros[..<size].withUnsafeBytes { try file.writeFully($0) }) != nil {}
    }
    harm.fills += 1
    fullUntil = .now + .milliseconds(dice.number(5..<100))
  }

  func empty() {
    fullUntil = nil
    guard plan.isSmall else { return }
    try? Descriptor.open(path: plan.small, [.readOnly, .directory]).unlink("filler")
  }

  /// Changes so many names in the inbox of one that is stopped that the system cannot tell of all.
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

  private var mostNotices: Int {
    var bytes = [UInt8](repeating: 0, count: 20)
    guard
      let file = try? Descriptor.open(
        path: "/proc/sys/fs/inotify/max_queued_events", [.readOnly]),
      let count = try? bytes.withUnsafeMutableBytes({ try file.readFully(into: $0) })
    else { return 16_384 }
    let digits = String(decoding: bytes[..<count].prefix { $0 != 10 }, as: UTF8.self)
    // Where the limit is far up, it is not worth the time.
    return min(Int(digits) ?? 16_384, 32_768)
  }

  /// Moves a channel's directory away and removes it, or puts an earlier one in its place.
  private func replaceStray() throws {
    let (name, aside) = (Plan.stray, Plan.stray + ".aside")
    let path = plan.container + "/channels"
    guard let channels = try? Descriptor.open(path: path, [.readOnly, .directory]) else { return }
    let isExchanged =
      dice.oneIn(2) && (try? channels.rename(aside, to: channels, name, .exchanging)) != nil
    let isMoved = !isExchanged && (try? channels.rename(name, to: channels, aside)) != nil
    if isExchanged || isMoved { harm.removals += 1 }
    // Somebody may be making something in it that very moment.
    if dice.oneIn(2) { _ = try Child.spawn("rm", ["-rf", "--", "\(path)/\(aside)"]).wait() }
  }
}
