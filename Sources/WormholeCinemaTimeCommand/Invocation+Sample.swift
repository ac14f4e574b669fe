import Wormhole
import WormholeCinemaTime
import WormholeCommandLine

/// The verbs with `--sample`: any process can read a side's list, but only the side's app may
/// change it.
extension Invocation {
  static let sampleTrade =
    "Not with --sample: the list belongs to the sample's app, which has the list in memory and "
    + "sends it whole to the other side with each change. A change by another process would be "
    + "overwritten. Type 'buy ID' and 'return ID' into 'run --sample'."

  func refuseSampleTrade() throws(Failure) {
    let role = try role
    try refuseSample(
      "only the app changes the list; type '\(verb.name) ID' into 'cinematime "
        + "--as \(role.rawValue) run --sample'")
  }

  func refuseSample(_ reason: String) throws(Failure) {
    guard has(.sample) else { return }
    throw .usage("cannot \(verb.action) with --sample: \(reason)")
  }

  /// Returns the tickets in the side's own settings, whether the side's app runs or not.
  private func ticketsInSample() throws -> [Ticket] {
    guard !has(.customer), !has(.everybody) else {
      throw Failure.usage(
        "cannot \(verb.action): the sample has one customer, without a name; leave out --for and "
          + "--everybody")
    }
    let role = try role
    guard let container = try openIfExists() else { return [] }
    return SampleOffice.tickets(of: role, in: container)
  }

  func listSample() throws -> Int32 {
    let tickets = Dictionary(try ticketsInSample().map { ($0.movie, $0.id) }) { first, _ in first }
    return try listMovies(ticket: { tickets[$0.id] }, seatsLeft: { _ in nil })
  }

  func ticketsOfSample() throws -> Int32 { try listTickets(ticketsInSample()) }
}
