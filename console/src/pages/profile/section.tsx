/** The frame that the sections of the profile share. */

import type { ReactNode } from 'react'
import type { OperationPath } from '../../../../schemas/routes.ts'
import type { AnswerOf } from '../../api/client.ts'
import { Panel } from '../../ui/states.tsx'

export type Security = AnswerOf<'showSecurity'>

export const SECURITY: OperationPath = '/me/security'

/** A section of the page: its title, an explanation, and its controls. */
export const Section = ({
  title,
  note,
  children,
}: {
  readonly title: string
  readonly note?: string
  readonly children: ReactNode
}) => (
  <Panel title={title}>
    <div className="flex flex-col gap-4 p-4">
      {note && <p className="max-w-prose text-quiet">{note}</p>}
      {children}
    </div>
  </Panel>
)
