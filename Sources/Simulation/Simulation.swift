/// Many episodes, one after the other.
package enum Simulation {
    /// After so many steps an episode's faults stop: some dozens of rotations.
    package static let stepsPerEpisode = 1500

    /// Runs episodes of `themes` in turn until `isEnough`; throws the first violation.
    package static func run(
        seed: UInt64, themes: [Theme] = Theme.allCases, until isEnough: (Figures) -> Bool
    ) throws(Violation) -> Figures {
        var seeds = SeededRandom(seed: seed)
        var figures = Figures()
        var turn = 0
        while !isEnough(figures) {
            let episode = Episode(
                seed: seeds.word(), theme: themes[turn % themes.count], steps: stepsPerEpisode)
            episode.run()
            if let violation = episode.violation { throw violation }
            figures.add(episode.figures)
            turn += 1
        }
        return figures
    }

    /// Runs one episode again, with its trace.
    package static func replay(seed: UInt64, theme: Theme) -> Episode {
        let episode = Episode(seed: seed, theme: theme, steps: stepsPerEpisode, isTraced: true)
        episode.run()
        return episode
    }
}
