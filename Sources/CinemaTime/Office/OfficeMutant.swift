#if FAULT_POINTS
  internal import FoundationEssentials
  internal import Syscalls
  internal import Wormhole

  /// Mechanisms of the ticket office that a test can switch off, to show that another test fails
  /// without them: `WORMHOLE_MUTANT` names one.
  ///
  /// Nobody should copy this file. A release build has none of it.
  enum OfficeMutant: String {
    /// Reads, decides and puts, in place of an update.
    case sellWithoutUpdate = "sell-without-update"
    /// Confirms before the disk has it.
    case sellWithoutPower = "sell-without-power"
    /// Takes an image that was asked for once for one that will come.
    case askOnce = "ask-once"

    static let chosen = Processes.environment("WORMHOLE_MUTANT").flatMap { Self(rawValue: $0) }

    /// Sells as the mutant does; nil if another one is chosen, or none.
    static func sell(
      _ movie: Movie.ID, to customer: String, by role: Role, in channel: Wormhole.Channel<Books>
    ) throws -> Ticket? {
      switch chosen {
      case .sellWithoutUpdate:
        var books = try channel.value ?? Books()
        let ticket = try books.sell(movie, to: customer, by: role, at: Date())
        try channel.put(books, durability: .power)
        return ticket
      case .sellWithoutPower:
        var ticket: Ticket?
        try channel.update(default: Books(), durability: .process) { books in
          ticket = try books.sell(movie, to: customer, by: role, at: Date())
        }
        return ticket
      case .askOnce, nil: return nil
      }
    }
  }
#endif
