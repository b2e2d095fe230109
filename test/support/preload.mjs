/**
 * Loaded before a test file, and before the runner's own preload: that one watches, for a coverage report nobody asks
 * for, every module by a hook in a thread of its own, which is half of what a short test costs.
 */
import module from 'node:module'
import './stripped-once.mjs'

module.register = () => undefined
delete process.env.NODE_OPTIONS
