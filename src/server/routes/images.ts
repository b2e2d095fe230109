/** Routes below `/v1/images`. */
import { type DeleteFilesDeps, deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import {
  editImages,
  type ImageTaskDeps,
  imageTasks,
  type MakeImagesDeps,
  makeImages,
} from '../../../pipelines/media/images/images.ts'
import { MAX_FORM_BYTES } from '../../../pipelines/media/inputs/read-form.ts'
import { type RoutedPath, routed } from './routed.ts'

export type ImageRouteDeps = MakeImagesDeps & ImageTaskDeps & DeleteFilesDeps

export function imageRoutes(deps: ImageRouteDeps): readonly RoutedPath[] {
  const images = imageTasks(deps)
  return [
    routed('/v1/images/generations', { POST: makeImages(deps), GET: images.list }),
    routed('/v1/images/generations/{id}', { GET: images.show, DELETE: images.cancel }),
    routed('/v1/images/generations/{id}/files', { DELETE: deleteFiles(deps, 'image') }),
    routed('/v1/images/edits', { POST: editImages(deps) }, { maxFormBytes: MAX_FORM_BYTES }),
  ]
}
