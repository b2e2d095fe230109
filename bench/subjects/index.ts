import { uwsClient, uwsUndici } from './bare.ts'
import { direct } from './direct.ts'
import { nginx } from './nginx.ts'
import { portkey } from './portkey.ts'
import type { Subject } from './subject.ts'
import { tollgate, tollgateNowhere } from './tollgate.ts'

/** All subjects in the order of the table. */
export const subjects: Subject[] = [direct, nginx, uwsUndici, uwsClient, portkey, tollgate, tollgateNowhere]
