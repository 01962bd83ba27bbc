// `uPlot` is loaded by a script of its own, and is a name of all modules.
import Plot from "./vendor/uplot.js";

declare global {
    const uPlot: typeof Plot;
    type uPlot = Plot;
    namespace uPlot {
        type Options = Plot.Options;
        type AlignedData = Plot.AlignedData;
    }
}
