/// A module of Apple's that Linux does not have, as sources for a target of a user's package.
///
/// The sources are the files in `Tests/Shims`, which the tests build as such targets. The manifest
/// embeds the files in the command.
enum Shim: String, CaseIterable {
  case combine, watchkit, os

  /// The name of the target, which is the name that code imports.
  var targetName: String {
    switch self {
    case .combine: "Combine"
    case .watchkit: "WatchKit"
    case .os: "os"
    }
  }

  /// The target's files, with paths relative to the target's directory.
  var files: [(path: String, text: String)] {
    switch self {
    case .combine:
      [
        ("Cancellables.swift", Self.text(PackageResources.Cancellables_swift)),
        ("Failures.swift", Self.text(PackageResources.Failures_swift)),
        ("Joining.swift", Self.text(PackageResources.Joining_swift)),
        ("Notifications.swift", Self.text(PackageResources.Notifications_swift)),
        ("ObservableObject.swift", Self.text(PackageResources.ObservableObject_swift)),
        ("Observer.swift", Self.text(PackageResources.Observer_swift)),
        ("Operators.swift", Self.text(PackageResources.Operators_swift)),
        ("Published.swift", Self.text(PackageResources.Published_swift)),
        ("Publisher.swift", Self.text(PackageResources.Publisher_swift)),
        ("Schedulers.swift", Self.text(PackageResources.Schedulers_swift)),
        ("Sinks.swift", Self.text(PackageResources.Sinks_swift)),
        ("Subjects.swift", Self.text(PackageResources.Subjects_swift)),
        ("Timing.swift", Self.text(PackageResources.Timing_swift)),
      ]
    case .watchkit:
      [
        ("WKBackgroundTasks.swift", Self.text(PackageResources.WKBackgroundTasks_swift)),
        ("WKExtension.swift", Self.text(PackageResources.WKExtension_swift)),
        ("WKInterfaceDevice.swift", Self.text(PackageResources.WKInterfaceDevice_swift)),
      ]
    case .os:
      [
        ("Logger.swift", Self.text(PackageResources.Logger_swift)),
        ("OSAllocatedUnfairLock.swift", Self.text(PackageResources.OSAllocatedUnfairLock_swift)),
        ("OSLogCalls.swift", Self.text(PackageResources.OSLogCalls_swift)),
        ("OSLogFormatting.swift", Self.text(PackageResources.OSLogFormatting_swift)),
        ("OSLogMessage.swift", Self.text(PackageResources.OSLogMessage_swift)),
      ]
    }
  }

  /// The files for each target of the user's that imports the shim beside a drop-in module.
  ///
  /// The drop-in modules have some names of Combine's too, for code that uses the names without
  /// `import Combine`; such a file settles which type a name means.
  var filesForUsers: [(path: String, text: String)] {
    guard self == .combine else { return [] }
    return [("CombineNames.swift", Self.text(PackageResources.CombineNames_swift))]
  }

  private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
