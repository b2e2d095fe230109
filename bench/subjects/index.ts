import { direct } from './direct.ts'
import { nginx } from './nginx.ts'
import { portkey } from './portkey.ts'
import type { Subject } from './subject.ts'
import { tollgate, tollgateNowhere } from './tollgate.ts'
import { uwsUndici } from './uws-undici.ts'

/** All subjects in the order of the table. */
export const subjects: Subject[] = [direct, nginx, uwsUndici, portkey, tollgate, tollgateNowhere]
