internal import FoundationEssentials
internal import Wormhole

/// The phone's part: it makes the images, and sends the images that the watch requests.
extension CinemaApp {
  func beginPhone() throws {
    guard let member = connectivity.member else { return }
    // If this process dies before all images are sent, the request is redelivered to the next
    // process.
    try member.receive(Payload.self) { [weak self] payload, _ in
      for movie in payload.qrCodes ?? [] {
        try self?.withTicket(for: movie) { _ in try self?.sendImage(of: movie) }
      }
    }
    // Accepted once the image is sent again: if the app ends before, the outcome is reported to
    // the next app.
    _ = try member.watchOutcomes(on: WorkQueue()) { [weak self] outcome in
      guard outcome.status != .delivered, let note = try? outcome.value(as: ImageNote.self) else {
        return true
      }
      while let app = self {
        do {
          try app.sendAgain(note.qrCodes)
          return true
        } catch {
          guard app.pause("\(error)") else { return false }
        }
      }
      return false
    }
    member.respond(to: Payload.self) { [weak self] payload -> Reply in
      var reply = Reply()
      for movie in payload.qrCodes ?? [] {
        try self?.withTicket(for: movie) { _ in
          try self?.makeImage(of: movie)
          // An image that cannot be read is an error, and not a missing image.
          reply.images[movie] = try self?.album.readImage(of: movie)
        }
      }
      return reply
    }
  }

  func makeImage(of movie: Movie.ID) throws {
    guard let movie = Movie.find(movie), !album.movies.contains(movie.id) else { return }
    try album.store(movie.ticketImage(), of: movie.id)
  }

  /// Sends an image again that did not arrive, for example because of damage on the way; the watch
  /// does not know of the failure.
  private func sendAgain(_ movie: Movie.ID) throws {
    try withTicket(for: movie) { _ in try sendImage(of: movie) }
  }

  private func sendImage(of movie: Movie.ID) throws {
    try makeImage(of: movie)
    try connectivity.send(image: album.path(of: movie), of: movie)
  }
}
