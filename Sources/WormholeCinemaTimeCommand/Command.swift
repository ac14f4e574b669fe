import WormholeCommandLine

/// The `cinematime` command.
@main enum Command {
  static func main() { Table.cinematime.main() }
}
