import WormholeCinemaTime

extension QRCode {
  /// The dark modules as the path of an SVG, with a quiet zone of four modules around.
  var path: String {
    var path = ""
    for row in 0..<side {
      var column = 0
      while column < side {
        let start = column
        while column < side, self[row, column] { column += 1 }
        if column > start {
          path += "M\(start + 4) \(row + 4)h\(column - start)v1h\(start - column)z"
        }
        column += 1
      }
    }
    return path
  }

  /// The code in lines for a terminal of any ground: with the colours set, light modules are light
  /// on a light ground too, as code readers expect.
  func lines(colored: Bool) -> [String] {
    guard colored else { return lines }
    return lines.map { "\u{1B}[38;5;231;48;5;16m\($0)\u{1B}[0m" }
  }
}

extension Movie {
  /// The number of the film in lists, from 1 to 9.
  var place: Int { (Movie.all.firstIndex(of: self) ?? 0) + 1 }

  /// Returns the film of a place in lists, or of its own number.
  static func find(typed word: String) -> Movie? {
    guard let number = Int(word) else { return nil }
    return (1...all.count).contains(number) ? all[number - 1] : find(number)
  }

  /// The text of a code that names the ticket.
  func ticketText(_ ticket: Ticket.ID) -> String { "\(ticketText), ticket \(ticket)" }
}
