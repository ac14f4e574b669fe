/// A module of Apple's that a user's package can have as a target of its own.
enum Shim: String, CaseIterable {
  case combine, watchkit, os

  /// The name under which sources import the module.
  var targetName: String {
    switch self {
    case .combine: "Combine"
    case .watchkit: "WatchKit"
    case .os: "os"
    }
  }

  /// The files of the target, by path in its directory.
  var files: [(path: String, text: String)] { [] }
}
