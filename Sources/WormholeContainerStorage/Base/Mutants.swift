internal import WormholeSyscalls

/// Mechanisms that a test can disable, to show that a test fails without them.
///
/// Without FAULT_POINTS ``has(_:)`` is false, and the compiler removes the code of the mutants.
package enum Mutants: String, CaseIterable, Sendable {
  case noFence
  case openStagingLate
  case keepExpired
  case noExpiryAlarm
  case recoverExpired
  case noRemoval
  case stealWithoutGeneration
  case noFileSync
  case noDirectorySync
  case noChecksum
  case healByRename
  case noRescanAfterOverflow
  case trustEmptyListing
  case readBeforeClaim
  case trustListing
  case noProgress
  case cancelByPuttingBack
  case noForkGuard
  case noSecondLook
  case trustOpenFile
  case noEndOfLull
  case everyNewBootRaises
  case decideAtOnce
  case removeWithoutFence
  case modeAfterName
  case noSteppingAside
  case keepHidden
  case noPassing
  case noRing
  case askAfterArriving
  case tellOnlyAsked
  case waitAgain
  case trustAskers
  case moveUnwaited
  case tellOnce
  case dropLateResume
  case forgetBuried
  case noInheritance
  case trustOldLook
  case keepOldFinding
  case trustYoungListing
  case noHoldingBack
  case mendFound
  case removePrivate
  case trustReadLocks
  case noHiddenProof
  case emptyOnly
  case trustStamps
  case keepFileMode
  case trustCopies
  case sweepUnasked
  case noTakenSync
  case forgetGivenUp
  case forgetPutBack
  case forgetInterrupted
  case forgetElsewhere
  case sweepElsewhere
  case trustAnyBridge
  case dropCarriedReceipts
  case changeCopies
  case dropOperations
  case operationsBeside
  case expireRetried
  case passHeldBack
  case anyKind
  case keeperEach
  case oneClock
  case repeatPartly
  case noLowerListing
  case keepSecondLock
  case noNameSync
  case noFolderSync
  case markBeforeSync
  case syncAgain
  case trustFuture
  case trustName
  case lastRemoved
  case ignoreBound
  case ownClock
  case forgetReplies
  case failAnyIncarnation
  case overtakeEarly
  case passEarly
  case trustOldNotice
  case trustLooking
  case tellChangesOnly
  case keepLost
  case forgetWanted
  case tellOtherWatch
  case countReturned
  case failCancelled
  case keepClaimName
  case ignoreEndedWorkers
  case ignoreDeadlines
  case acceptLate
  case holdUnrenewed
  case anyHeader
  case ignoreIsolation
  case tellAtOnce
  case countGiven
  case readEachWaiting
  case keepReleased
  case ignoreHandlingDeadline
  case noQueueResume
  case ignoreStandbyNotice
  case ignoreGrace
  case claimAnyKey
  case trustClaim
  case returnKeysToInbox
  case forgetReturned
  case ignoreDue
  case anyDelay
  case keepSentStamp
  case cancelWaitingOnly
  case keepLateCopies
  case refuseSweptGuest
  case neverGoBack
  case forgetCursor
  case forgetRecord
  case acceptKnown
  case ignoreChain
  case confirmUnstored
  case anyContext
  case anyIncarnation
  case forgetChange
  case wakeAny
  case askWakesOnce
  case keepStrays
  case dropRefused
  case trustSenders
  case trustOldRecords
  case claimShown
  case trustEarly
  case keepDropped
  case keepOrphans
  case overtakePieces
  case listOnce
  case syncBeforeNotice
  case keepLate
  case saveUnsynced
  case saveUnlooked
  case neverSave
  case moveWithWorkers
  case endEarly
  case stayInPlace
  case lendUnrenewed
  case endAnyClaim
  case renewUnstated
  case neverRevoke
  case removeListed
  case skipInterrupted

  /// The name in `WORMHOLE_MUTANT` and `.ci/mutants`: `no-fence` for `noFence`.
  package var name: String {
    let bytes = rawValue.utf8.flatMap { letter -> [UInt8] in
      let isCapital = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(letter)
      return isCapital ? [UInt8(ascii: "-"), letter | 0x20] : [letter]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  package init?(named name: String) {
    guard let mutant = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = mutant
  }

  #if FAULT_POINTS
    /// The mutant that `WORMHOLE_MUTANT` names; nil for a name of another program's mutant.
    private static let chosen = Processes.environment("WORMHOLE_MUTANT").flatMap(Self.init(named:))
  #endif

  /// Whether the mechanism is disabled in this process.
  @inline(__always)
  package static func has(_ mutant: Mutants) -> Bool {
    #if FAULT_POINTS
      chosen == mutant
    #else
      false
    #endif
  }
}
