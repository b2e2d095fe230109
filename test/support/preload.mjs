/**
 * Loaded before a test file, and before the runner's own preload: that one watches every module, for a coverage report
 * nobody asks for, which is half of what a short test costs. It is not loaded at all.
 */
import module from 'node:module'
import './stripped-once.mjs'

const RUNNERS_PRELOAD = '/node_modules/@tapjs/processinfo/dist/esm/import.mjs'

module.registerHooks({
  resolve: (specifier, context, next) =>
    specifier.endsWith(RUNNERS_PRELOAD)
      ? { url: 'data:text/javascript,', shortCircuit: true }
      : next(specifier, context),
})
// For what the test starts.
process.env.NODE_OPTIONS = `--import ${new URL('./stripped-once.mjs', import.meta.url).href}`
