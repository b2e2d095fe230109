import { testRoom } from '../../support/room.ts'

await testRoom(import.meta.url)
