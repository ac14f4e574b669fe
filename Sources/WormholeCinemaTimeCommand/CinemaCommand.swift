import WormholeCommandLine

/// The `cinematime` command.
@main enum CinemaCommand {
  static func main() { Table.cinematime.main() }
}
