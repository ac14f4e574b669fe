internal import FoundationEssentials
internal import Wormhole

/// The phone makes the images, and sends those that the watch asks for.
extension CinemaApp {
  func beginPhone() throws {
    guard let member = connectivity.member else { return }
    // If this process dies before it has sent them all, the request comes again to the next.
    try member.receive(Payload.self) { [weak self] payload, _ in
      for movie in payload.qrCodes ?? [] {
        try self?.withTicket(for: movie) { _ in try self?.sendImage(of: movie) }
      }
    }
    member.respond(to: Payload.self) { [weak self] payload -> Reply in
      var reply = Reply()
      for movie in payload.qrCodes ?? [] {
        try self?.withTicket(for: movie) { _ in
          try self?.makeImage(of: movie)
          reply.images[movie] = self?.album.image(of: movie)
        }
      }
      return reply
    }
  }

  func makeImage(of movie: Movie.ID) throws {
    guard let movie = Movie.find(movie), !album.movies.contains(movie.id) else { return }
    try album.store(movie.ticketImage(), of: movie.id)
  }

  private func sendImage(of movie: Movie.ID) throws {
    try makeImage(of: movie)
    try connectivity.send(image: album.path(of: movie), of: movie)
  }
}
