/** The dialects the simulated provider speaks. Adding one is adding its file and its line here. */

import type { Dialect } from './dialect.ts'
import { chatCompletions } from './dialects/chat-completions.ts'

export const DIALECTS: readonly Dialect[] = [chatCompletions]
