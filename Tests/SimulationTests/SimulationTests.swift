import Simulation
import Testing
