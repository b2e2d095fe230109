import { runTestFiles } from '../support/shared-process.ts'

await runTestFiles(import.meta.url)
