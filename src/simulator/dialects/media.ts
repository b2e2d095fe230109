/** The dialects of pictures, films, music and voices. Adding one is adding its file and its line here. */

import type { Dialect } from '../dialect.ts'
import { files } from './files.ts'
import { openaiImages } from './openai-images.ts'
import { task } from './task.ts'

export const MEDIA_DIALECTS: readonly Dialect[] = [files, task, openaiImages]
