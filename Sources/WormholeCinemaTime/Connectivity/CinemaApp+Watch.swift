internal import Dispatch
internal import Wormhole

/// The watch's part: it requests missing images, and stores the images that arrive.
extension CinemaApp {
  func beginWatch() throws {
    guard let member = connectivity.member else { return }
    // The requests of an earlier run are still pending. They are noted before an image or an
    // outcome can arrive, because each of these removes the note of its request.
    let asked = try connectivity.asked
    let tickets = try office.books.tickets(of: customer).filter { asked.contains($0.movie) }
    keep { state in for ticket in tickets { state.asked[ticket.movie] = ticket.id } }
    try member.receive(kinds: ["ImageNote"]) { [weak self] message in
      try self?.receiveImage(message)
    }
    try member.watchOutcomes { [weak self] outcome in
      guard outcome.status != .delivered, let payload = try? outcome.value(as: Payload.self) else {
        return
      }
      self?.forget(payload.qrCodes ?? [])
      self?.tryLater("the request for images was not delivered: \(outcome.status)")
    }
  }

  private func forget(_ movies: [Movie.ID]) {
    keep { state in for movie in movies { state.asked[movie] = nil } }
  }

  /// Requests the images that are missing and not yet requested, and starts the phone if it does
  /// not run.
  func ask(for tickets: [Ticket], _ state: inout State) throws {
    let valid = Set(tickets.map(\.id))
    state.asked = state.asked.filter { valid.contains($0.value) }
    let present = try album.findMovies()
    let asked = state.asked
    let lacking = tickets.filter { !present.contains($0.movie) && asked[$0.movie] != $0.id }
    guard !lacking.isEmpty else { return }
    try connectivity.send(Payload(qrCodes: lacking.map(\.movie)), by: .guaranteed)
    for ticket in lacking { state.asked[ticket.movie] = ticket.id }
    guard try connectivity.peer.reachability != .running else { return }
    DispatchQueue.global().async { [connectivity, weak self] in
      do {
        try connectivity.peer.wake()
      } catch {
        // The request stays in the phone's inbox until the phone starts.
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

  private func receiveImage(_ message: Message) throws {
    let movie = try message.value(as: ImageNote.self).qrCodes
    do {
      // If the ticket was returned in the meantime, the image is deleted with its message.
      try withTicket(for: movie) { state in
        forget(movie, &state)
        try message.file?.move(to: album.path(of: movie), replacing: true)
      }
    } catch {
      // The image is requested again: another attempt at this message would end in the dead
      // letters.
      keep { forget(movie, &$0) }
      tryLater("\(error)")
    }
  }
}
