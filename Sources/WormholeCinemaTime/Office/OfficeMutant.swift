#if FAULT_POINTS
  internal import FoundationEssentials
  internal import WormholeSyscalls
  internal import Wormhole

  /// Mechanisms of the ticket office that a test can disable, to show that a test fails without
  /// them: `WORMHOLE_MUTANT` names one.
  ///
  /// Do not copy this file into a program. A release build contains none of its code.
  enum OfficeMutant: String {
    /// Reads, decides and puts the value, instead of one update.
    case sellWithoutUpdate = "sell-without-update"
    /// Confirms a sale before the disk has synced it.
    case sellWithoutPower = "sell-without-power"
    /// Treats an image that was requested once as an image that will arrive.
    case askOnce = "ask-once"

    static let chosen = Processes.environment("WORMHOLE_MUTANT").flatMap { Self(rawValue: $0) }

    /// Sells as the chosen mutant does; returns nil if a different mutant is chosen, or none.
    static func sell(
      _ movie: Movie.ID, to customer: String, by role: Role, in channel: Channel<Books>
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
