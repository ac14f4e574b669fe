internal import Dispatch
internal import Wormhole

/// The watch asks for the images it lacks, and keeps those that come.
extension CinemaApp {
  func beginWatch() throws {
    guard let member = connectivity.member else { return }
    try member.receive(kinds: ["ImageNote"]) { [weak self] message in
      try self?.receiveImage(message)
    }
    try member.watchOutcomes { [weak self] outcome in
      guard outcome.end != .delivered, let payload = try? outcome.value(as: Payload.self) else {
        return
      }
      self?.forget(payload.qrCodes ?? [])
      self?.tryLater("images were asked for in vain: \(outcome.end)")
    }
    // What an earlier life has asked for is still on its way.
    let asked = try connectivity.asked
    let tickets = try office.books.tickets(of: customer).filter { asked.contains($0.movie) }
    keep { state in for ticket in tickets { state.asked[ticket.movie] = ticket.id } }
  }

  private func forget(_ movies: [Movie.ID]) {
    keep { state in for movie in movies { state.asked[movie] = nil } }
  }

  /// Asks for what is lacking and was not asked for, and has the phone started if it does not run.
  func ask(for tickets: [Ticket], _ state: inout State) throws {
    let valid = Set(tickets.map(\.id))
    state.asked = state.asked.filter { valid.contains($0.value) }
    let present = try album.findMovies()
    let asked = state.asked
    let lacking = tickets.filter { !present.contains($0.movie) && asked[$0.movie] != $0.id }
    guard !lacking.isEmpty else { return }
    try connectivity.send(Payload(qrCodes: lacking.map(\.movie)), by: .guaranteed)
    for ticket in lacking { state.asked[ticket.movie] = ticket.id }
    guard try connectivity.peer.reachability != .immediatelyReachable else { return }
    DispatchQueue.global().async { [connectivity, weak self] in
      do {
        try connectivity.peer.wake()
      } catch {
        // The request waits for whoever starts the phone.
        self?.tell("\(error)")
      }
    }
  }

  private func forget(_ movie: Movie.ID, _ state: inout State) {
    #if FAULT_POINTS
      if OfficeMutant.chosen == .askOnce { return }
    #endif
    state.asked[movie] = nil
  }

  private func receiveImage(_ message: Wormhole.Message) throws {
    let movie = try message.value(as: ImageNote.self).qrCodes
    do {
      // Of a ticket that was returned meanwhile the image goes with its message.
      try withTicket(for: movie) { state in
        forget(movie, &state)
        try message.file?.take(to: album.path(of: movie), replacing: true)
      }
    } catch {
      // It is asked for anew, where another attempt would end among the dead letters.
      keep { forget(movie, &$0) }
      tryLater("\(error)")
    }
  }
}
