import WormholeCommandLine
import WormholeSyscalls

/// Times and sizes as people read them, and as programs do.
extension Duration {
  /// The seconds, with three decimals.
  var inSeconds: String {
    let milliseconds = inNanoseconds / 1_000_000
    let rest = "\(milliseconds % 1000)"
    return "\(milliseconds / 1000)." + String(repeating: "0", count: 3 - rest.count) + rest
  }

  /// The time in the largest unit that fits, as in `5 min`.
  var inUnits: String {
    let seconds = inNanoseconds / 1_000_000_000
    return switch seconds {
    case ..<10: String(inSeconds.dropLast(2)) + " s"
    case ..<120: "\(seconds) s"
    case ..<7200: "\(seconds / 60) min"
    case ..<172_800: "\(seconds / 3600) h"
    default: "\(seconds / 86_400) d"
    }
  }
}

extension Int {
  /// A number of bytes in the largest unit that fits, as in `12 MiB`.
  var inUnits: String {
    switch self {
    case ..<10_240: "\(self) B"
    case ..<(10 << 20): "\(self >> 10) KiB"
    case ..<(10 << 30): "\(self >> 20) MiB"
    default: "\(self >> 30) GiB"
    }
  }
}

extension Listing.Cell {
  /// The state of a member.
  static func state(_ text: String) -> Self {
    switch text {
    case "running": .init(text, .good)
    case "stopped": .init(text, .bad)
    default: .init(text, .faint)
    }
  }
}
