import { testRoom } from '../../support/shared-process.ts'

await testRoom(import.meta.url)
