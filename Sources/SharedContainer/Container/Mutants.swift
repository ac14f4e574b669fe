internal import Syscalls

/// Mechanisms that a test can switch off, to show that another test fails without them.
///
/// Without FAULT_POINTS every question answers no, and the compiler removes what hangs on it.
package struct Mutants: OptionSet, Sendable {
  package let rawValue: UInt64
  package init(rawValue: UInt64) { self.rawValue = rawValue }

  package static let noFence = Mutants(rawValue: 1 << 0)
  package static let noRemoval = Mutants(rawValue: 1 << 1)
  package static let stealWithoutGeneration = Mutants(rawValue: 1 << 2)
  package static let noFileSync = Mutants(rawValue: 1 << 3)
  package static let noDirectorySync = Mutants(rawValue: 1 << 4)
  package static let noChecksum = Mutants(rawValue: 1 << 5)
  package static let healByRename = Mutants(rawValue: 1 << 6)
  package static let noRescanAfterOverflow = Mutants(rawValue: 1 << 7)
  package static let trustEmptyListing = Mutants(rawValue: 1 << 8)
  package static let readBeforeClaim = Mutants(rawValue: 1 << 9)
  package static let trustListing = Mutants(rawValue: 1 << 10)
  package static let noProgress = Mutants(rawValue: 1 << 11)
  package static let cancelByPuttingBack = Mutants(rawValue: 1 << 12)
  package static let noForkGuard = Mutants(rawValue: 1 << 13)
  package static let noSecondLook = Mutants(rawValue: 1 << 14)
  package static let trustOpenFile = Mutants(rawValue: 1 << 15)
  package static let noEndOfLull = Mutants(rawValue: 1 << 16)
  package static let everyNewBootRaises = Mutants(rawValue: 1 << 17)
  package static let decideAtOnce = Mutants(rawValue: 1 << 18)
  package static let removeWithoutFence = Mutants(rawValue: 1 << 19)
  package static let modeAfterName = Mutants(rawValue: 1 << 20)
  package static let noSteppingAside = Mutants(rawValue: 1 << 21)
  package static let keepHidden = Mutants(rawValue: 1 << 22)
  package static let noPassing = Mutants(rawValue: 1 << 23)
  package static let noRing = Mutants(rawValue: 1 << 24)
  package static let askAfterArriving = Mutants(rawValue: 1 << 25)
  package static let tellOnlyAsked = Mutants(rawValue: 1 << 26)
  package static let waitAgain = Mutants(rawValue: 1 << 27)
  package static let trustAskers = Mutants(rawValue: 1 << 28)
  package static let moveUnwaited = Mutants(rawValue: 1 << 29)
  package static let forgetBuried = Mutants(rawValue: 1 << 30)
  package static let noInheritance = Mutants(rawValue: 1 << 31)
  package static let trustOldLook = Mutants(rawValue: 1 << 32)
  package static let keepOldFinding = Mutants(rawValue: 1 << 33)
  package static let trustYoungListing = Mutants(rawValue: 1 << 34)
  package static let noHoldingBack = Mutants(rawValue: 1 << 35)

  /// The names by which `WORMHOLE_MUTANT` asks for them.
  package static let named: [(name: String, mutant: Mutants)] = [
    ("no-fence", .noFence), ("no-removal", .noRemoval),
    ("steal-without-generation", .stealWithoutGeneration), ("no-file-sync", .noFileSync),
    ("no-directory-sync", .noDirectorySync), ("no-checksum", .noChecksum),
    ("heal-by-rename", .healByRename), ("no-rescan-after-overflow", .noRescanAfterOverflow),
    ("trust-empty-listing", .trustEmptyListing), ("read-before-claim", .readBeforeClaim),
    ("trust-listing", .trustListing), ("no-progress", .noProgress),
    ("cancel-by-putting-back", .cancelByPuttingBack),
    ("mode-after-name", .modeAfterName),
    ("no-fork-guard", .noForkGuard), ("no-second-look", .noSecondLook),
    ("trust-open-file", .trustOpenFile), ("no-end-of-lull", .noEndOfLull),
    ("no-stepping-aside", .noSteppingAside), ("remove-without-fence", .removeWithoutFence),
    ("keep-hidden", .keepHidden), ("no-passing", .noPassing), ("no-ring", .noRing),
    ("ask-after-arriving", .askAfterArriving), ("tell-only-asked", .tellOnlyAsked),
    ("wait-again", .waitAgain), ("trust-askers", .trustAskers),
    ("move-unwaited", .moveUnwaited), ("forget-buried", .forgetBuried),
    ("no-inheritance", .noInheritance),
    ("every-new-boot-raises", .everyNewBootRaises), ("decide-at-once", .decideAtOnce),
    ("trust-old-look", .trustOldLook), ("keep-old-finding", .keepOldFinding),
    ("trust-young-listing", .trustYoungListing), ("no-holding-back", .noHoldingBack),
  ]

  #if FAULT_POINTS
    /// What `WORMHOLE_MUTANT` takes out of this process; a name that is none of these is another
    /// program's.
    private static let chosen: Mutants = {
      let name = Processes.environment("WORMHOLE_MUTANT")
      return named.first { $0.name == name }?.mutant ?? []
    }()
  #endif

  /// Whether this process does without a mechanism.
  @inline(__always)
  package static func has(_ mutant: Mutants) -> Bool {
    #if FAULT_POINTS
      chosen.contains(mutant)
    #else
      false
    #endif
  }
}
