/** Works on long bodies without a thread. */
import { BODY_WORK, type WorkOnLongBody } from '../../src/protocols/body-work.ts'

export const workHere: WorkOnLongBody = async (_accountId, name, input, body) => BODY_WORK[name](input, body)
